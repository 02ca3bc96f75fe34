import { exitCodes } from '../exit-codes.js'
import { badUsageError } from '../cli-error.js'
import type { Command } from '../command.js'
import { loadAgent } from '../load-agent.js'
import { loadMachine } from '../load-machine.js'
import { openStoreToShow } from '../open-session-store.js'
import { waitForInterrupt, openStudio } from '../open-studio.js'
import { type OptionSpecs, parseOptions, parseWholeNumber } from '../parse-options.js'
import { storeOptionSpec } from './common-options.js'

const options = {
  ...storeOptionSpec,
  agent: {
    value: 'MODULE',
    about:
      'a module whose default export is an agent, or a function of the store that returns one: to answer with',
  },
  machine: { value: 'MODULE', about: 'show the chart of this machine instead of the agent loop' },
  port: { value: 'N', about: 'the port on 127.0.0.1 (default: any that is free)' },
  open: { about: 'open the page in a browser' },
  help: { short: 'h', about: 'show this help' },
} satisfies OptionSpecs

export const studioCommand: Command = {
  name: 'studio',
  about: 'Shows sessions on a local page: runs step by step, open questions, forks.',
  positional: '',
  options,
  notes: [
    'Nothing leaves this machine: the page is served on 127.0.0.1, only to the browser that opened the address with the token.\n' +
      'Without --agent the page is read-only.',
    'Examples:\n' +
      '  statewright studio --open\n' +
      '  statewright studio --store file:.sessions --agent ./agent.mjs',
  ],
  execute: async (args, io) => {
    const { positionals, text, has } = parseOptions(args, options)
    if (positionals.length > 0)
      throw badUsageError(`This command takes no argument: '${positionals.join(' ')}'.`)
    const port = parseWholeNumber('--port', text('port'), 0) ?? 0
    if (port > 65_535)
      throw badUsageError(`--port must be a whole number of at most 65535 (is '${port}').`, '--port')
    const machine = text('machine')
    const chart = machine === undefined ? undefined : await loadMachine(machine, io.cwd)
    const { store } = await openStoreToShow(text('store'), io)
    try {
      const module = text('agent')
      const agent = module === undefined ? undefined : await loadAgent(module, io.cwd, store)
      const studio = await openStudio(
        { store, port, ...(agent && { agent }), ...(chart && { machine: chart }) },
        io,
        { inBrowser: has('open') },
      )
      await waitForInterrupt(io, studio)
      await studio.close()
      return exitCodes.completed
    } finally {
      await store.close()
    }
  },
}

import type { AgentContext } from '../../../machines/agent/context.js'
import { stripControls } from '../../core/format/format-words.js'
import { replaySession } from '../../core/sessions/replay-session.js'
import { type GuardReplay, type ReplayedFinding, replayGuards } from '../../testing/replay-guards.js'
import type { CliIO, Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { loadConfig } from '../load-config.js'
import { withSessionStore } from '../open-session-store.js'
import { parseOptions } from '../parse-options.js'
import { parseSessionId, sessionOptionSpecs } from './sessions/session-options.js'

const options = {
  config: { short: 'c', value: 'FILE', about: 'a JSON configuration with the guardrails to try' },
  json: { about: 'print one line of JSON: the findings, and what they would have saved' },
  ...sessionOptionSpecs,
}

export const guardsCommand: Command = {
  name: 'guards',
  about: 'Shows what the guards would have found in a session, with the default or another configuration.',
  positional: 'SESSION',
  options,
  notes: [
    "The model's answers stay as recorded, even after a nudge. Nothing runs, nothing is written.",
    'Exit codes: 0 no guard halts the session, 2 bad usage or configuration, 3 a guard halts it.',
    'Examples:\n  statewright guards work\n  statewright guards work --config stricter.json',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const id = parseSessionId(positionals)
    const { preset, guardrails } = await loadConfig(text('config'), io.cwd)
    const { messages, tools } = await withSessionStore(text('store'), io, async (store) => {
      await findSession(store, id)
      const { messages: all, snapshot } = await replaySession(store, id)
      const context = snapshot?.context as AgentContext | undefined
      return { messages: all, tools: context?.tools ?? {} }
    })
    const said = replayGuards(messages, { preset, guardrails }, tools)
    if (has('json')) io.stdout.write(`${JSON.stringify(said)}\n`)
    else writeReplay(said, io)
    return said.halt === null ? exitCodes.completed : exitCodes.stopped
  },
}

function writeReplay({ findings, steps, calls, halt }: GuardReplay, { stdout }: CliIO): void {
  for (const finding of findings) stdout.write(`${formatFinding(finding)}\n`)
  const { executed, refused } = calls
  const end =
    halt === null
      ? 'no guard would have halted it'
      : `a guard would have halted it after response ${halt.step + 1}`
  stdout.write(
    `${steps} ${steps === 1 ? 'response' : 'responses'} with calls: ${executed} ${executed === 1 ? 'call' : 'calls'} ` +
      `executed, ${refused} refused; ${end}.\n`,
  )
}

function formatFinding({ step, action, guard, rule, message }: ReplayedFinding): string {
  const which = rule === undefined ? guard : `${guard} (${rule})`
  return stripControls(`response ${step + 1}  ${action}  ${which}: ${message}`)
}

import { join } from 'node:path'
import { omitUndefined } from '../../../guards/lib/json.js'
import { editorUrl, isWebAddress } from '../../studio/studio-page.js'
import { badUsageError, type CliIO, defineCommand, missingSession } from '../command.js'
import { loadAgent, loadMachine } from '../load.js'
import { announceStudio, loadStudio, openPage, waitForInterrupt } from '../open-studio.js'
import { agentModuleOption, byOption, storeOption } from '../options.js'
import { closeAfter, findSession, openStoreToShow, withSessionStore } from '../session-store.js'
import type { Studio } from '../../studio/index.js'

const portOption = {
  value: 'N',
  min: 0,
  max: 65_535,
  about: 'the port on 127.0.0.1 (default: a free one)',
} as const

async function serve(studio: Studio, io: CliIO): Promise<void> {
  await waitForInterrupt(io, studio)
  await studio.close()
}

export const studioCommand = defineCommand({
  name: 'studio',
  about: 'Shows sessions on a local page, step by step.',
  options: {
    ...storeOption,
    ...agentModuleOption,
    ...byOption,
    machine: { value: 'MODULE', about: 'show the chart of this machine instead of the agent loop' },
    port: portOption,
    open: { about: 'open the page in a browser' },
  },
  notes: [
    'Nothing leaves this machine: the page is served on 127.0.0.1, only to the browser that opened the address with the token. ' +
      'Without --agent the page is read-only.',
    'Examples:\n' +
      '  statewright studio --open\n' +
      '  statewright studio --store file:.sessions --agent ./agent.mjs',
  ],
  execute: async ({ values: { port = 0, by, open, ...values } }, io) => {
    const machine = values.machine === undefined ? undefined : await loadMachine(values.machine, io.cwd)
    await closeAfter(await openStoreToShow(values.store, io), async (store) => {
      const agent = values.agent === undefined ? undefined : await loadAgent(values.agent, io.cwd, store)
      const folder = await io.dataFolder()
      const viewsFile = folder === null ? undefined : join(folder, 'studio-views.json')
      const studio = await loadStudio({ store, port, ...omitUndefined({ by, agent, machine, viewsFile }) })
      const url = announceStudio(studio, io)
      if (open) openPage(url)
      await serve(studio, io)
    })
  },
})

export const statelyCommand = defineCommand({
  name: 'stately',
  about: "Shows a session in the studio, with Stately's editor.",
  options: {
    session: { short: 's', value: 'ID', about: 'the session to show' },
    live: { about: 'follow new records as they are written, in that session or the latest one' },
    context: { about: "send the studio's full view of each record instead of a few numbers" },
    editor: { value: 'URL', about: `the editor's address (default: ${editorUrl})` },
    port: { ...portOption, short: 'p' },
    ...storeOption,
  },
  notes: [
    "The studio listens on 127.0.0.1 and shows Stately's editor in a frame. It sends the editor the state, the event's name, " +
      'the reason, and the steps, tokens and USD of each record; it sends conversation text only with --context. Until ' +
      'the editor responds, the studio shows its own chart.',
    'Examples:\n  statewright stately --session work\n  statewright stately --live',
  ],
  execute: async ({ values }, io) => {
    const { session: id, live, context: withContext = false, editor = editorUrl, port = 0 } = values
    if (id === undefined && !live)
      throw badUsageError(
        `Specify a session with --session ID, or use --live. ${missingSession}`,
        '--session',
      )
    if (!isWebAddress(editor))
      throw badUsageError(`--editor must be an address such as ${editorUrl} (got '${editor}').`, '--editor')
    if (id !== undefined) await withSessionStore(values.store, io, (store) => findSession(store, id))
    await closeAfter(await openStoreToShow(values.store, io), async (store) => {
      const studio = await loadStudio({ store, port, stately: { editor, withContext } })
      const place = id === undefined ? 'live' : `session/${encodeURIComponent(id)}${live ? '' : '/1'}`
      io.stdout.write(`${studio.url}#/${place}\n`)
      io.stderr.write('Open it in a browser on this machine; Ctrl-C ends it.\n')
      await serve(studio, io)
    })
  },
})

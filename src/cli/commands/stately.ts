import { editorUrl, isWebAddress } from '../../studio/studio-page.js'
import { badUsageError } from '../cli-error.js'
import type { Command } from '../command.js'
import { exitCodes } from '../exit-codes.js'
import { findSession } from '../find-session.js'
import { openStoreToShow, withSessionStore } from '../open-session-store.js'
import { waitForInterrupt } from '../open-studio.js'
import { parseOptions, parseWholeNumber } from '../parse-options.js'
import { sessionOptionSpecs } from './sessions/session-options.js'

const options = {
  session: { short: 's', value: 'ID', about: 'the session that is shown' },
  live: { about: 'show what is written while it is: of that session, or of the one written last' },
  context: { about: 'all that the studio shows of a record, in place of a few numbers' },
  editor: { value: 'URL', about: `where the editor is (default: ${editorUrl})` },
  port: { short: 'p', value: 'PORT', about: 'the port on 127.0.0.1 (default: any that is free)' },
  ...sessionOptionSpecs,
}

export const statelyCommand: Command = {
  name: 'stately',
  about: "Shows a stored session in Stately's editor: the studio, with the editor in the place of its chart.",
  positional: '',
  options,
  notes: [
    "The studio listens on 127.0.0.1 and holds Stately's editor in a frame. Of each record it sends the editor the state, the\n" +
      "event's name, the reason, and how many steps, tokens and USD; text of the conversation only with --context. Until the\n" +
      'editor answers, the studio shows its own chart. Ctrl-C ends it.',
    'Examples:\n  statewright stately --session work\n  statewright stately --live',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const [extra] = positionals
    if (extra !== undefined)
      throw badUsageError(`'${extra}' is too much. A session is named by --session ${extra}.`, extra)
    const id = text('session')
    if (id === undefined && !has('live'))
      throw badUsageError(
        "Which session? Name it with --session ID ('statewright sessions list' shows them), or --live.",
      )
    const port = parseWholeNumber('--port', text('port'), 0) ?? 0
    if (port > 65_535) throw badUsageError(`--port: ${port} is no port; the highest is 65535.`, '--port')
    const editor = text('editor') ?? editorUrl
    if (!isWebAddress(editor))
      throw badUsageError(`--editor: '${editor}' is no address such as ${editorUrl}.`, '--editor')
    if (id !== undefined) await withSessionStore(text('store'), io, (store) => findSession(store, id))
    const { store } = await openStoreToShow(text('store'), io)
    try {
      const { startStudio } = await import('../../studio/index.js')
      const studio = await startStudio({ store, port, stately: { editor, withContext: has('context') } })
      const place = id === undefined ? 'live' : `session/${encodeURIComponent(id)}${has('live') ? '' : '/1'}`
      io.stdout.write(`${studio.url}#/${place}\n`)
      io.stderr.write('Open it in a browser on this machine; Ctrl-C ends it.\n')
      await waitForInterrupt(io, studio)
      await studio.close()
      return exitCodes.completed
    } finally {
      await store.close()
    }
  },
}

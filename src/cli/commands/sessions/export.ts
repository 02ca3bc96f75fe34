import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { readSession } from '../../../core/sessions/log/read-session.js'
import { badUsage, CliError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { findSession } from '../../find-session.js'
import { codeOf, whyUnreadable } from '../../load-file.js'
import { withSessionStore } from '../../open-session-store.js'
import { parseOptions } from '../../options.js'
import { printableJson } from '../../render/json.js'
import { markdown } from '../../render/markdown.js'
import { onlyId, sessionOptionSpecs } from './options.js'

const options = {
  markdown: { about: 'the conversation as Markdown, for people' },
  html: { about: 'one page that shows it as the studio does, to send to somebody' },
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
  force: { short: 'f', about: 'replace a file that is there' },
  ...sessionOptionSpecs,
}

export const exportCommand: Command = {
  name: 'sessions export',
  about: 'Writes a whole session as JSON, as restoreSession takes it, as Markdown, or as a page.',
  positional: 'ID',
  options,
  notes: [
    'Examples:\n' +
      '  statewright sessions export 6f1c… --out session.json\n' +
      '  statewright sessions export 6f1c… --html --out session.html\n' +
      '  statewright sessions export 6f1c… --markdown | less',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const id = onlyId(positionals)
    const out = text('out')
    if (has('force') && out === undefined) throw badUsage('--force goes with --out FILE.', '--force')
    if (has('html') && has('markdown'))
      throw badUsage('--html and --markdown exclude each other: choose one form.')
    await withSessionStore(text('store'), io, async (store) => {
      const { id: found } = await findSession(store, id)
      const content = has('html') ? await htmlOf(store, found) : await textOf(store, found, has('markdown'))
      if (out === undefined) io.stdout.write(content)
      else await write(content, out, has('force'), io)
    })
    return exitCodes.completed
  },
}

async function textOf(store: SessionStore, id: string, isMarkdown: boolean): Promise<string> {
  const session = await readSession(store, id)
  const stored = session.toJSON()
  return isMarkdown
    ? markdown(stored, stored.messages)
    : `${printableJson(JSON.stringify(stored, null, 2))}\n`
}

/** Loaded when it is asked for: other commands do without. */
async function htmlOf(store: SessionStore, id: string): Promise<string> {
  const { exportSession } = await import('../../../studio/export-session.js')
  return exportSession(store, id)
}

/** A new file is for its owner only, as the store is; one that is replaced keeps its mode. */
async function write(content: string, file: string, replace: boolean, { cwd }: CliIO): Promise<void> {
  const path = resolve(cwd, file)
  let isNew = false
  try {
    const handle = await open(path, replace ? 'w' : 'wx', 0o600)
    try {
      isNew = !replace
      await handle.writeFile(content)
    } finally {
      await handle.close()
    }
  } catch (cause) {
    // Half a session is no copy of it.
    if (isNew) await rm(path, { force: true }).catch(() => undefined)
    const why =
      codeOf(cause) === 'EEXIST'
        ? `'${file}' is there already. Name another file, or replace it with --force.`
        : whyUnreadable(cause, file)
            .replace('there is no file', 'there is no folder for')
            .replace('may not be read', 'may not be written')
            .replace('cannot be read', 'cannot be written')
    throw new CliError('unwritable_file', `--out: ${why}`, '--out', { cause })
  }
}

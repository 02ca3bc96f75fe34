import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
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
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
  force: { short: 'f', about: 'replace a file that is there' },
  ...sessionOptionSpecs,
}

export const exportCommand: Command = {
  name: 'sessions export',
  about: 'Writes a whole session as JSON, as restoreSession takes it, or as Markdown.',
  positional: 'ID',
  options,
  notes: [
    'Examples:\n' +
      '  statewright sessions export 6f1c… --out session.json\n' +
      '  statewright sessions export 6f1c… --markdown | less',
  ],
  execute: async (args, io) => {
    const { positionals, has, text } = parseOptions(args, options)
    const id = onlyId(positionals)
    const out = text('out')
    if (has('force') && out === undefined) throw badUsage('--force goes with --out FILE.', '--force')
    await withSessionStore(text('store'), io, async (store) => {
      const session = await readSession(store, (await findSession(store, id)).id)
      const stored = session.toJSON()
      const content = has('markdown')
        ? markdown(stored, stored.messages)
        : `${printableJson(JSON.stringify(stored, null, 2))}\n`
      if (out === undefined) io.stdout.write(content)
      else await write(content, out, has('force'), io)
    })
    return exitCodes.completed
  },
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

import { open, rm } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { Message } from '../../../../machines/agent/messages.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { readSession } from '../../../core/sessions/log/read-session.js'
import { formatMessageText, stripControls } from '../../../core/format/format-words.js'
import { badUsageError, CliError } from '../../cli-error.js'
import type { CliIO, Command } from '../../command.js'
import { exitCodes } from '../../exit-codes.js'
import { findSession } from '../../find-session.js'
import { getErrorCode, describeReadError } from '../../load-file.js'
import { withSessionStore } from '../../open-session-store.js'
import { type ParsedOptions, parseOptions } from '../../parse-options.js'
import { escapeJson } from '../../render/json-renderer.js'
import { formatTimestamp } from '../../render/format-time.js'
import { collectToolNames } from '../../render/format-transcript.js'
import type { ShareOptions } from '../../../studio/export-session.js'
import type { TestExport } from './export-test.js'
import { runnerOption } from '../common-options.js'
import { parseSessionId, sessionOptionSpecs } from './session-options.js'

const options = {
  markdown: { about: 'the conversation as Markdown, for people' },
  html: { about: 'one HTML file that shows it like the studio, to share' },
  card: {
    about: 'a picture (SVG) of what was asked, the way on the chart, the times, the verdict and the cost',
  },
  film: { about: 'a film (SVG that moves) of the way on the chart, with the transcript and the verdict' },
  'without-texts': { about: 'html, card and film: states, times, costs and names of tools alone' },
  as: {
    value: 'FORM',
    about: 'json (the default), markdown, html, card, film, or test: a test that replays it without a model',
  },
  out: { short: 'o', value: 'FILE', about: 'write to a file instead of stdout' },
  force: { short: 'f', about: 'replace an existing file' },
  runner: runnerOption,
  update: { about: 'take a new recording for an existing test' },
  agent: { value: 'MODULE', about: 'the agent to test: a default export, as for the studio' },
  tools: {
    short: 't',
    value: 'live|MODULE',
    about: 'live: the test executes calls; or the module with the tools of the run; may be repeated',
  },
  config: {
    short: 'c',
    value: 'FILE',
    about: 'the configuration of the run, when no module has its agent',
  },
  instructions: { short: 'i', value: 'TEXT', about: 'the system prompt of the run, likewise' },
  ...sessionOptionSpecs,
}

export const exportCommand: Command = {
  name: 'sessions export',
  about:
    'Exports a session as JSON (for restoreSession), Markdown, an HTML page, a picture, a film or a test.',
  positional: 'ID',
  options,
  notes: [
    'Examples:\n' +
      '  statewright sessions export 6f1c… --out session.json\n' +
      '  statewright sessions export 6f1c… --html --out session.html\n' +
      '  statewright sessions export 6f1c… --card --without-texts --out session.svg\n' +
      '  statewright sessions export 6f1c… --film --out session.svg\n' +
      '  statewright sessions export 6f1c… --markdown | less\n' +
      '  statewright sessions export 6f1c… --as test --agent ./agent.mjs --out test/refund.test.mjs',
  ],
  execute: async (args, io) => {
    const given = parseOptions(args, options)
    const { positionals, has, text } = given
    const id = parseSessionId(positionals)
    const out = text('out')
    const form = parseForm(given)
    if (form === 'test') {
      const asked = parseTestExport(given)
      await withSessionStore(text('store'), io, async (store) => {
        const { exportTest } = await import('./export-test.js')
        await exportTest(store, (await findSession(store, id)).id, asked, io)
      })
      return exitCodes.completed
    }
    if (has('force') && out === undefined) throw badUsageError('--force goes with --out FILE.', '--force')
    await withSessionStore(text('store'), io, async (store) => {
      const { id: found, summary } = await findSession(store, id)
      const content =
        form === 'html' || isPicture(form)
          ? await share(store, found, {
              form: form === 'html' ? 'page' : form,
              texts: !has('without-texts'),
            })
          : await formatSession(store, found, form === 'markdown' ? (summary?.title ?? '') : undefined)
      if (out === undefined) io.stdout.write(content)
      else await writeExport(content, out, has('force'), io)
    })
    return exitCodes.completed
  },
}

type ExportOptions = ParsedOptions<keyof typeof options>

const forms = ['json', 'markdown', 'html', 'card', 'film', 'test'] as const
const isPicture = (form: (typeof forms)[number]): form is 'card' | 'film' =>
  form === 'card' || form === 'film'
const testOnlyOptions = ['runner', 'update', 'agent', 'tools', 'config', 'instructions'] as const

/** @throws {CliError} for contradictory forms and options */
function parseForm({ has, text }: ExportOptions): (typeof forms)[number] {
  const asked = [
    ...(['html', 'markdown', 'card', 'film'] as const).filter((name) => has(name)),
    ...[text('as') ?? []].flat(),
  ]
  const form = forms.find((name) => name === (asked[0] ?? 'json'))
  if (form === undefined) throw badUsageError(`--as must be ${forms.join(', ')} (is '${asked[0]}').`, '--as')
  if (asked.some((name) => name !== form))
    throw badUsageError(
      `${asked.map((name) => `--${name}`).join(' and ')} exclude each other: choose one form.`,
    )
  const stray = form === 'test' ? undefined : testOnlyOptions.find((name) => has(name))
  if (has('without-texts') && form !== 'html' && !isPicture(form))
    throw badUsageError('--without-texts goes with --html, --card or --film.', '--without-texts')
  if (stray !== undefined) throw badUsageError(`--${stray} goes with --as test.`, `--${stray}`)
  return form
}

function parseTestExport({ all, has, text }: ExportOptions): TestExport {
  const tools = all('tools').filter((name) => name !== 'live' && name !== 'log')
  if (tools.length > 1) throw badUsageError('--tools takes one module, and live.', '--tools')
  if (has('agent'))
    for (const name of ['config', 'instructions'] as const)
      if (has(name) || tools.length > 0)
        throw badUsageError(
          `--agent and --${has(name) ? name : 'tools MODULE'} exclude each other: the agent has its own.`,
        )
  return {
    agent: text('agent'),
    config: text('config'),
    instructions: text('instructions'),
    tools: tools[0],
    isLive: all('tools').includes('live'),
    runner: text('runner'),
    out: text('out'),
    force: has('force'),
    update: has('update'),
  }
}

/** `title`: of a Markdown file. */
async function formatSession(store: SessionStore, id: string, title: string | undefined): Promise<string> {
  const session = await readSession(store, id)
  const stored = session.toJSON()
  return title !== undefined
    ? formatMarkdown({ ...stored, ...(title !== '' && { name: title }) }, stored.messages)
    : `${escapeJson(JSON.stringify(stored, null, 2))}\n`
}

/** Loaded on demand: other commands do not need it. */
async function share(store: SessionStore, id: string, options: ShareOptions): Promise<string> {
  const { exportSession } = await import('../../../studio/export-session.js')
  return exportSession(store, id, options)
}

/** A new file is readable by its owner only, like the store; a replaced file keeps its mode. */
async function writeExport(content: string, file: string, replace: boolean, { cwd }: CliIO): Promise<void> {
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
    // A partial copy must not stay.
    if (isNew) await rm(path, { force: true }).catch(() => undefined)
    const why =
      getErrorCode(cause) === 'EEXIST'
        ? `'${file}' exists already. Name another file, or replace it with --force.`
        : describeReadError(cause, file)
            .replace('there is no file', 'there is no folder for')
            .replace('may not be read', 'may not be written')
            .replace('cannot be read', 'cannot be written')
    throw new CliError('unwritable_file', `--out: ${why}`, '--out', { cause })
  }
}

interface MarkdownHead {
  id: string
  name?: string | undefined
}

/** A conversation as Markdown: texts unchanged, calls and complete results as code blocks. */
function formatMarkdown({ id, name }: MarkdownHead, messages: readonly Message[]): string {
  const names = collectToolNames(messages)
  const blocks = messages.flatMap((message) => (message.internal ? [] : formatMessage(message, names)))
  return [`# ${toInline(name ?? `Session ${id}`)}`, ...blocks, ''].join('\n\n').trimEnd() + '\n'
}

function formatMessage(message: Message, names: ReadonlyMap<string, string>): string[] {
  const when = formatTimestamp(message.createdAt)
  switch (message.role) {
    case 'system':
      return [`> ${toInline(formatMessageText(message))}`]
    case 'user':
      return [`## You · ${when}`, stripControls(formatMessageText(message))]
    case 'assistant': {
      const text = message.content || message.refusal || ''
      const calls = (message.tool_calls ?? []).flatMap(({ function: call }) => [
        `Calls \`${toInline(call.name)}\`:`,
        toFencedBlock(call.arguments),
      ])
      return [`## Assistant · ${when}`, ...(text === '' ? [] : [stripControls(text)]), ...calls]
    }
    default: {
      const status = typeof message.data?.status === 'string' ? ` (${message.data.status})` : ''
      const name = names.get(message.tool_call_id) ?? message.tool_call_id
      return [`Result of \`${toInline(name)}\`${toInline(status)}:`, toFencedBlock(message.content)]
    }
  }
}

/** One line without backticks, which would end a code span. */
function toInline(text: string): string {
  return stripControls(text).replaceAll(/\s+/g, ' ').replaceAll('`', "'")
}

/** A code block with a fence that is longer than any in the text. */
function toFencedBlock(text: string): string {
  const code = stripControls(text)
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}

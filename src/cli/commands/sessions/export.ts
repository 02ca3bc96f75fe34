import type { Message } from '../../../../machines/agent/messages.js'
import { formatMessageText, stripControls } from '../../../core/format/format-words.js'
import { readSession } from '../../../core/sessions/replay-session.js'
import type { SessionStore } from '../../../core/sessions/store/store.js'
import { badUsageError, defineCommand, type ParsedOptions } from '../../command.js'
import { outOption, refuseStray, runnerOption, storeOption } from '../../options.js'
import { escapeJson, formatTimestamp, writeOutput } from '../../output.js'
import { withSession } from '../../session-store.js'
import { collectToolNames } from '../../transcript.js'
import type { TestExport } from './export-test.js'

const forms = ['json', 'markdown', 'html', 'card', 'film', 'test'] as const
type Form = (typeof forms)[number]

const optionSpecs = {
  markdown: { about: 'the conversation as Markdown, for people' },
  html: { about: 'one HTML file that shows the session as in the studio, for sharing' },
  card: {
    about: 'a picture (SVG) of the request, the path on the chart, the timeline, the verdict and the cost',
  },
  film: { about: 'an animated SVG of the path on the chart, with the transcript and the verdict' },
  'without-text': { about: 'html, card and film: only states, times, costs and tool names' },
  as: {
    value: 'FORM',
    choices: forms,
    about: 'json (the default), markdown, html, card, film, or test: a test that replays it without a model',
  },
  ...outOption,
  force: { short: 'f', about: 'replace an existing file' },
  runner: runnerOption,
  update: { about: 'store a new recording for an existing test' },
  agent: {
    value: 'MODULE',
    about: 'the module whose default export is the agent to test, as for the studio',
  },
  tools: {
    short: 't',
    value: 'live|MODULE',
    about: "live to execute calls in the test, or the module with the run's tools; can be repeated",
  },
  config: { short: 'c', value: 'FILE', about: "the run's configuration, if no module exports its agent" },
  instructions: {
    short: 'i',
    value: 'TEXT',
    about: 'the system prompt of the run, if no module exports its agent',
  },
  ...storeOption,
} as const

type ExportOptions = ParsedOptions<typeof optionSpecs>

export const exportCommand = defineCommand({
  name: 'sessions export',
  about: 'Exports a session as JSON, Markdown, HTML, a picture, a film or a test.',
  positional: 'ID',
  options: optionSpecs,
  notes: [
    'restoreSession() reads the JSON.',
    'Examples:\n' +
      '  statewright sessions export 6f1c… --out session.json\n' +
      '  statewright sessions export 6f1c… --html --out session.html\n' +
      '  statewright sessions export 6f1c… --card --without-text --out session.svg\n' +
      '  statewright sessions export 6f1c… --film --out session.svg\n' +
      '  statewright sessions export 6f1c… --markdown | less\n' +
      '  statewright sessions export 6f1c… --as test --agent ./agent.mjs \\\n' +
      '    --out test/refund.test.mjs',
  ],
  execute: async (parsed, io) => {
    const { out, force: replace = false, 'without-text': isBare } = parsed.values
    const form = readForm(parsed.values)
    const request = form === 'test' ? readTestExport(parsed) : null
    if (request === null && replace && out === undefined)
      throw badUsageError('--force needs --out FILE.', '--force')
    await withSession(parsed, io, async (store, { id, summary }) => {
      if (request !== null) {
        const { exportTest } = await import('./export-test.js')
        return exportTest(store, id, request, io)
      }
      let content: string
      if (isShared(form)) {
        const { exportSession } = await import('../../../studio/export-session.js')
        content = await exportSession(store, id, { form: form === 'html' ? 'page' : form, texts: !isBare })
      } else {
        const title = form === 'markdown' ? (summary?.title ?? '') : undefined
        content = await formatSession(store, id, title)
      }
      // Like the store, a new file is readable only by its owner.
      await writeOutput(content, out, io, { replace, mode: 0o600 })
    })
  },
})

const isShared = (form: Form): form is 'html' | 'card' | 'film' => ['html', 'card', 'film'].includes(form)

/** @throws {CliError} for contradictory formats and options */
function readForm(values: ExportOptions['values']): Form {
  const named: Form[] = [
    ...(['html', 'markdown', 'card', 'film'] as const).filter((name) => values[name]),
    ...[values.as ?? []].flat(),
  ]
  const [form = 'json', other] = new Set(named)
  if (other !== undefined)
    throw badUsageError(`--${form} and --${other} cannot be combined. Choose one form.`)
  if (values['without-text'] && !isShared(form))
    throw badUsageError('--without-text needs --html, --card or --film.', '--without-text')
  const testOnly = ['runner', 'update', 'agent', 'tools', 'config', 'instructions'] as const
  if (form !== 'test') refuseStray(values, testOnly, '--as test')
  return form
}

function readTestExport({ all, values }: ExportOptions): TestExport {
  const { agent, config, instructions, runner = 'jest', out, force = false, update = false } = values
  const tools = all('tools').filter((name) => name !== 'live' && name !== 'log')
  if (tools.length > 1) throw badUsageError('--tools accepts one module, and live.', '--tools')
  const stray =
    (['config', 'instructions'] as const).find((name) => values[name] !== undefined) ??
    (tools[0] && 'tools MODULE')
  if (agent !== undefined && stray !== undefined)
    throw badUsageError(`--agent and --${stray} cannot be combined. The agent has its own.`)
  const isLive = all('tools').includes('live')
  return { agent, config, instructions, tools: tools[0], isLive, runner, out, force, update }
}

/** Markdown starts with a title, JSON does not. */
async function formatSession(store: SessionStore, id: string, title: string | undefined): Promise<string> {
  const stored = (await readSession(store, id)).toJSON()
  if (title === undefined) return `${escapeJson(JSON.stringify(stored, null, 2))}\n`
  const names = collectToolNames(stored.messages)
  const head = `# ${toInline(title || (stored.name ?? `Session ${stored.id}`))}`
  const blocks = stored.messages.flatMap((one) => (one.internal ? [] : formatMessage(one, names)))
  return [head, ...blocks, ''].join('\n\n').trimEnd() + '\n'
}

/** Calls and complete results are code blocks. */
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

/** One line without backticks, because a backtick would end a code span. */
function toInline(text: string): string {
  return stripControls(text).replaceAll(/\s+/g, ' ').replaceAll('`', "'")
}

/** A code block whose fence is longer than any fence in the text. */
function toFencedBlock(text: string): string {
  const code = stripControls(text)
  const longest = Math.max(2, ...(code.match(/`+/g) ?? []).map((run) => run.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}\n${code}\n${fence}`
}

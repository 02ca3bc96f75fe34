import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { createAgent, defineAgents, memoryStore } from '../../../src/index.js'
import { formatShellOption, quoteShellWord } from '../../../src/core/format/shell-words.js'
import { mcpServer, type McpServerOptions } from '../../../src/mcp/server/index.js'
import { runsAll } from '../../support/extent.js'
import { plainAnswer } from '../../support/manual-model.js'
import { tool } from '../../support/tools.js'
import { awaitTask, lastResult, rpc, scriptedModel } from './support.js'

interface Call {
  id?: string
  name?: string
  args: unknown
}

/** A server whose agent makes these calls and waits for approvals. */
function asking(calls: readonly Call[], more: Partial<McpServerOptions> = {}) {
  const paid: unknown[] = []
  const tools = [...new Set(calls.map(({ name = 'pay' }) => name))].map((name) =>
    tool(name, (input) => void paid.push(input), { needsApproval: true }),
  )
  const model = scriptedModel(() => 'Done.')
  model.request = (question) => {
    const answer = { ...plainAnswer, text: 'Done.' }
    if (lastResult(question) !== undefined) return Promise.resolve(answer)
    const toolCalls = calls.map(({ id, name = 'pay', args }, i) => ({
      id: id ?? `call_${i}`,
      type: 'function' as const,
      function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
    }))
    return Promise.resolve({ ...answer, text: '', toolCalls, finishReason: 'tool_calls' })
  }
  const agents = defineAgents({ payer: createAgent({ model, store: memoryStore(), tools }) })
  const handler = mcpServer({ agents, authorize: () => 'ann', onError: () => undefined, ...more })
  const call = { name: 'payer', arguments: { message: 'Pay.', session: 's' } }
  const ask = (params: object = {}, capabilities: object = { elicitation: { form: {} } }) =>
    rpc(handler, 'tools/call', { ...call, ...params }, { capabilities })
  return { handler, paid, ask }
}

type Forms = Record<string, { params: { message: string } }>

const messagesOf = (result: unknown): string[] =>
  Object.values((result as { inputRequests: Forms }).inputRequests).map(({ params }) => params.message)

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

/** Control characters, formatting characters such as U+202E, and lone surrogates. */
const unseen = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}]/u

test('a form shows every argument, even if the first one is long', async () => {
  const args = { note: `Monthly fee.${' '.repeat(2100)}`, amount: 99_999, to: 'mallory \u202Eecnivorp ot' }
  const [message = ''] = messagesOf((await asking([{ args }]).ask()).result)
  expect(message).toContain('⟨2100 spaces⟩')
  expect(message).toContain('"amount":99999')
  expect(message).toContain(String.raw`"to":"mallory \u202eecnivorp ot"`)
})

test('the form of any call shows it completely, without invisible characters', async () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.integer(),
    fc.constantFrom('\u202e', '\u2066', '\u{e0041}'),
  )
  const calls = fc.record({
    id: fc.string({ unit: 'binary', maxLength: 20 }),
    args: fc.oneof(
      fc.dictionary(fc.string({ unit: 'binary', maxLength: 8 }), value),
      fc.string({ unit: 'binary' }),
    ),
  })
  await fc.assert(
    fc.asyncProperty(calls, async (call) => {
      const { ask } = asking([call])
      const { result } = await ask()
      if (result?.['resultType'] !== 'input_required') return
      const [message = ''] = messagesOf(result)
      expect(message).not.toMatch(unseen)
      if (typeof call.args === 'string') return
      // Escapes have the same meaning in JSON, so the displayed text can be parsed back.
      const shown = message.slice(message.indexOf('(') + 1, message.lastIndexOf(')'))
      const spaced = shown.replaceAll(/⟨(\d+) spaces⟩/g, (_, count) => ' '.repeat(Number(count)))
      expect(JSON.parse(spaced)).toEqual(JSON.parse(JSON.stringify(call.args)))
    }),
    { numRuns: runsAll ? 300 : 30 },
  )
})

test('a call that is too long for a form is not asked about, and cannot be answered by its key', async () => {
  const { handler, paid, ask } = asking([
    { args: { note: 'x'.repeat(30_000) } },
    { name: 'look', args: { at: 1 } },
  ])
  const { result } = await ask()
  expect(messagesOf(result)).toEqual(['The agent wants to call look({"at":1}).'])
  const { inputRequests, requestState } = result as unknown as { inputRequests: Forms; requestState: string }
  const approve = { action: 'accept', content: { confirm: true } }
  const keys = Object.keys(inputRequests)
  const inputResponses = Object.fromEntries(keys.map((key) => [key, approve]))
  const waiting = await ask({ requestState, inputResponses })
  expect(textOf(waiting.result)).toContain('30011 characters, too many for this form')
  await ask({ requestState, inputResponses: { [String(keys[0]).replace('call_1', 'call_0')]: approve } })
  expect(paid).toEqual([])
  // A client with task support keeps polling the task.
  const task = await awaitTask(handler, 's', ['working', 'input_required'])
  expect(task.status).toBe('working')
})

test('names and progress are escaped, too', async () => {
  const { ask } = asking([{ name: 'pay', args: {}, id: 'call\u001b[2J' }])
  expect(JSON.stringify((await ask()).result?.['inputRequests'])).toContain('pay({})')
})

describe('the command of answerCommand', () => {
  const hostile = [
    'x; touch owned #\u001b[2J',
    "it's",
    '$(id)',
    '-rf',
    '--all',
    '=ls',
    '`id`',
    'a\nb',
    '!!',
    '~',
    '*',
    'a&b',
  ]

  test.each(hostile)('quotes the call %j', async (id) => {
    const { ask } = asking([{ id, args: {} }], { answerCommand: 'statewright send --store=file:x' })
    const text = textOf((await ask({}, {})).result)
    const command = text
      .split('\n')
      .find((line) => line.startsWith('statewright send --store=file:x ann:s approve '))
    expect(command).toBeDefined()
    expect(command).not.toMatch(unseen)
    const words = readByBash(`printf '%s\\0' ${command}`)
    expect(words.at(-1)?.startsWith(`${id}@`)).toBe(true)
    expect(words).toHaveLength(id.startsWith('-') ? 7 : 6)
  })

  test('is shown over HTTP only if the app enables it', async () => {
    const { ask } = asking([{ args: {} }])
    expect(textOf((await ask({}, {})).result)).not.toContain('approve')
  })

  test('any word and option reaches the shell unchanged', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'grapheme' }), { minLength: 1, maxLength: 30 }), (texts) => {
        const words = texts.map((text) => text.replaceAll('\0', ''))
        expect(readByBash(`printf '%s\\0' ${words.map(quoteShellWord).join(' ')}`)).toEqual(words)
      }),
      { numRuns: runsAll ? 30 : 5 },
    )
    expect(readByBash(`printf '%s\\0' ${formatShellOption('approve', '-x@1')}`)).toEqual(['--approve=-x@1'])
  })
})

/** The words of a command line after shell parsing. */
function readByBash(line: string): string[] {
  const text = execFileSync('bash', ['--norc', '-c', line], { env: { LC_ALL: 'C.UTF-8' }, encoding: 'utf8' })
  return text.split('\0').slice(0, -1)
}

import { createResponsesFormat } from '../../../src/core/models/openai/responses-fold.js'
import { openaiResponses } from '../../../src/core/models/openai/openai-provider.js'
import type { Json, JsonObject } from '../../../machines/agent/json.js'
import { seeded, split } from './chunked.js'
import { type Outcome, overFetch, overSocket, readPieces } from './outcomes.js'
import { hasRecordings, recordedAnswers, type Recording } from './recordings.js'
import { sampledRows } from '../../support/extent.js'

const createModel = (options: { baseURL: string; fetch?: typeof fetch }) =>
  openaiResponses({ model: 'recorded', provider: 'recorded', apiKey: 'key', ...options })

/** Tools whose outputs only the client can provide. Their items are rejected by name. */
const wantsOutput: Readonly<Record<string, string>> = {
  'openai-apply-patch-tool-delete.1': 'apply_patch_call (call_delete_1)',
  'openai-custom-tool.1': 'custom_tool_call (write_sql, call_custom_sql_001)',
  'openai-local-shell-tool.1': 'local_shell_call (call_h3nm8hUG0KO9tVNuRACkL1ri)',
}

/** A question that precedes the provider's call. The index ignores it. */
const asksFirst: Readonly<Record<string, readonly string[]>> = {
  'openai-mcp-tool-approval.1': ['zip1.create_short_url'],
}

/** Messages of one answer. The index counts them without separators. */
function allText({ response }: Extract<Outcome, { response: unknown }>): string {
  const items = (response.providerItems?.items ?? []) as JsonObject[]
  const commentary = items.flatMap(({ type, phase, content }) =>
    type === 'message' && phase === 'commentary' ? (content as JsonObject[]) : [],
  )
  const commentaryTexts = commentary.map(({ text }: { text?: Json }) =>
    typeof text === 'string' ? text : '',
  )
  return commentaryTexts.join('') + response.text
}

/** Compares an outcome with the expected values and returns the differences. */
function differences(outcome: Outcome, { name, expected, status, body }: Recording): string[] {
  const differing: string[] = []
  const same = (what: string, got: unknown, wanted: unknown) => {
    if (wanted !== undefined && JSON.stringify(got) !== JSON.stringify(wanted)) {
      differing.push(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`)
    }
  }
  const usage = expected.usage && (expected.usage.input + expected.usage.output > 0 ? expected.usage : null)
  const foreign = Object.keys(wantsOutput).find((file) => name.includes(file))
  if ('failure' in outcome) {
    const { failure } = outcome
    if (foreign !== undefined) {
      same('code', failure.code, 'unsupported_output')
      if (!failure.message.includes(wantsOutput[foreign] ?? '')) differing.push(failure.message)
    } else if (!expected.error) differing.push(`failed: ${failure.message}`)
    if (status !== 200) same('status', failure.status, status)
    same('partial text', failure.partialText, expected.text ?? '')
    if (usage)
      same('usage', [failure.usage?.inputTokens, failure.usage?.outputTokens], [usage.input, usage.output])
    return differing
  }
  if (expected.error || foreign !== undefined) return ['an error was taken for an answer']
  const { response } = outcome
  const text = allText(outcome)
  if (expected.text !== undefined) same('text', text, expected.text)
  same('text head', text.slice(0, expected.textHead?.length), expected.textHead)
  same('text length', text.length, expected.textLength)
  // The index counts only summaries.
  const thoughts = response.reasoning.length
  if (!body.includes('reasoning_text')) same('reasoning length', thoughts, expected.reasoningLength)
  else if (thoughts === 0) differing.push('no reasoning')
  same(
    'calls',
    response.toolCalls
      .filter(({ hosted }) => !hosted)
      .map(({ id, function: call }) => [id, call.name, call.arguments]),
    expected.toolCalls,
  )
  same(
    'approvals',
    response.toolCalls.flatMap(({ hosted, function: { name: called } }) => (hosted ? [called] : [])),
    asksFirst[Object.keys(asksFirst).find((file) => name.includes(file)) ?? ''] ?? [],
  )
  same('complete', response.complete, expected.finishReason?.startsWith('response.') ?? false)
  const isCut = expected.finishReason === 'response.incomplete'
  same('finish reason', response.finishReason, isCut ? 'max_output_tokens' : 'completed')
  same(
    'usage',
    response.usage && [response.usage.inputTokens, response.usage.outputTokens],
    usage && [usage.input, usage.output],
  )
  return differing
}

const describeRecordings = hasRecordings ? describe : describe.skip
if (!hasRecordings) console.log('recordings: skipped, ../shared/recordings is not there')

describeRecordings('recorded answers of the Responses API', () => {
  const answers = hasRecordings ? recordedAnswers('responses') : []

  test('are read as expected, over both transports and under any chunking of their bytes', async () => {
    const random = seeded(20261122)
    const wrong: string[] = []
    const hosts = new Map<string, [right: number, all: number]>()
    const played = sampledRows(answers)
    for (const recording of played) {
      const bytes = new TextEncoder().encode(recording.body)
      const outcome = await overFetch(recording, createModel)
      const differing = differences(outcome, recording)
      const sent = await overSocket(recording, createModel, '/responses')
      if (sent !== JSON.stringify(outcome))
        differing.push(`over a socket: ${sent} instead of ${JSON.stringify(outcome)}`)
      if (recording.status === 200) {
        for (const pieces of [[bytes], split(bytes, random), split(bytes, random, 7)]) {
          const other = await readPieces(pieces, createResponsesFormat('responses/recorded'))
          if (JSON.stringify(other) !== JSON.stringify(outcome))
            differing.push(`${pieces.length} pieces give ${JSON.stringify(other)}`)
        }
      }
      if (differing.length > 0) wrong.push(`${recording.name}\n  ${differing.join('\n  ')}`)
      const [right, all] = hosts.get(recording.host) ?? [0, 0]
      hosts.set(recording.host, [right + (differing.length === 0 ? 1 : 0), all + 1])
    }
    const table = Array.from(hosts, ([host, [right, all]]) => `  ${host}: ${right} of ${all}`)
    console.log(
      `responses recordings: ${played.length - wrong.length} of ${played.length}\n${table.join('\n')}`,
    )
    expect(wrong).toEqual([])
    expect(answers.length).toBeGreaterThan(40)
  }, 120_000)
})

import { chatFormat } from '../../../src/core/models/openai/chat-wire.js'
import { openaiChat, type OpenAIChatOptions } from '../../../src/core/models/openai/openai-provider.js'
import { bytewise, seeded, split } from './chunked.js'
import { type Outcome, overFetch, overSocket, readPieces } from './outcomes.js'
import { hasRecordings, reconstructedAnswers, recordedAnswers, type Recording } from './recordings.js'
import { runsAll, sampledRows } from '../../support/extent.js'

const read = (pieces: Uint8Array[]) => readPieces(pieces, chatFormat)
const chat = (options: Pick<OpenAIChatOptions, 'baseURL' | 'fetch'>) =>
  openaiChat({ model: 'recorded', apiKey: 'key', ...options })
const fetchIt = (recording: Recording) => overFetch(recording, chat)
const sendIt = (recording: Recording) => overSocket(recording, chat, '/chat/completions')

const withoutThoughts = (text: string) => text.replace(/<think>[^]*?<\/think>\s*/g, '')

/** Compares an outcome with the expected values and returns the differences. */
/**
 * Files that hold two answers with the same call. In one answer, a call that arrives whole twice is one call.
 */
const glued = new Set(['vercel-ai/cerebras/cererebras-structured-output-tools.1.chunks.txt #0'])

function differences(outcome: Outcome, { name, expected, status }: Recording): string[] {
  const differing: string[] = []
  const same = (what: string, got: unknown, wanted: unknown) => {
    if (wanted !== undefined && JSON.stringify(got) !== JSON.stringify(wanted)) {
      differing.push(`${what}: ${JSON.stringify(got)} instead of ${JSON.stringify(wanted)}`)
    }
  }
  if ('failure' in outcome) {
    if (status === 200 && !expected.error && expected.text !== undefined)
      differing.push(`failed: ${outcome.failure.message}`)
    same('partial text', outcome.failure.partialText, expected.text ?? '')
    if (status !== 200) same('status', outcome.failure.status, status)
    return differing
  }
  if (expected.error) return ['an error was taken for an answer']
  const { response, text } = outcome
  const thinks = expected.text?.includes('<think>') ?? false
  same('streamed text', text, response.text)
  if (expected.text !== undefined) same('text', response.text, withoutThoughts(expected.text))
  else if (!thinks) {
    same('text head', response.text.slice(0, expected.textHead?.length), expected.textHead)
    same('text length', response.text.length, expected.textLength)
  }
  if (!thinks) {
    if (expected.reasoning !== undefined) same('reasoning', response.reasoning, expected.reasoning ?? '')
    same('reasoning length', response.reasoning.length, expected.reasoningLength)
  }
  const calls = response.toolCalls.map(({ id, function: call }) => [id, call.name, call.arguments])
  const listed = glued.has(name) ? expected.toolCalls?.slice(0, 1) : expected.toolCalls
  same(
    'calls',
    calls,
    listed?.map(([id, tool, args]) => [id, tool, args || '{}']),
  )
  if (expected.finishReason !== undefined)
    same('finish reason', response.finishReason, expected.finishReason || null)
  same('complete', response.complete, expected.complete)
  if (expected.usage === null) same('usage', response.usage, null)
  else if (expected.usage !== undefined) {
    same('input tokens', response.usage?.inputTokens, expected.usage.input)
    same('output tokens', response.usage?.outputTokens, expected.usage.output)
  }
  return differing
}

const describeRecordings = hasRecordings ? describe : describe.skip
if (!hasRecordings) console.log('recordings: skipped, ../shared/recordings is not there')

describeRecordings('recorded answers of real providers', () => {
  const answers = hasRecordings ? [...recordedAnswers(), ...reconstructedAnswers()] : []

  test('are read as expected, over both transports and under any chunking of their bytes', async () => {
    const random = seeded(20240817)
    const wrong: string[] = []
    const hosts = new Map<string, [right: number, all: number]>()
    const played = sampledRows(answers)
    for (const recording of played) {
      const bytes = new TextEncoder().encode(recording.body)
      const outcome = await fetchIt(recording)
      const differing = differences(outcome, recording)
      const sent = await sendIt(recording)
      if (sent !== JSON.stringify(outcome))
        differing.push(`over a socket: ${sent} instead of ${JSON.stringify(outcome)}`)
      if (recording.status === 200) {
        const cut = [[bytes], split(bytes, random, 7), split(bytes, random), bytewise(bytes, random)]
        for (const pieces of runsAll ? cut : cut.slice(0, 2)) {
          const other = await read(pieces)
          if (JSON.stringify(other) !== JSON.stringify(outcome))
            differing.push(`${pieces.length} pieces give ${JSON.stringify(other)}`)
        }
      }
      if (differing.length > 0) wrong.push(`${recording.name}\n  ${differing.join('\n  ')}`)
      const [right, all] = hosts.get(recording.host) ?? [0, 0]
      hosts.set(recording.host, [right + (differing.length === 0 ? 1 : 0), all + 1])
    }
    const table = Array.from(hosts, ([host, [right, all]]) => `  ${host}: ${right} of ${all}`)
    console.log(`recordings: ${played.length - wrong.length} of ${played.length}\n${table.join('\n')}`)
    expect(wrong).toEqual([])
    expect(answers.length).toBeGreaterThan(90)
  }, 120_000)
})

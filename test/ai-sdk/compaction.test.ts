import { type AgentEvent, createAgent, memoryStore, patternShield } from '../../src/index.js'
import { languageModel } from '../../src/ai-sdk/index.js'
import { tool } from '../support/tools.js'
import { serverOf } from './answer-server.js'
import { anthropicMessage } from './hosted-answers.js'
import { packages } from './support.js'

const summary = { type: 'compaction', content: 'SUMMARY: they greeted each other.' }
const usage = {
  input_tokens: 220,
  output_tokens: 8,
  cache_read_input_tokens: 100,
  iterations: [
    { type: 'compaction', input_tokens: 55_000, output_tokens: 125 },
    { type: 'message', input_tokens: 220, output_tokens: 8 },
  ],
}

/** An Anthropic answer after a compaction, in its wire format. */
const answerOf = (content: object[], stop = 'end_turn') => anthropicMessage(content, stop, usage)

const compacted = answerOf([summary, { type: 'text', text: 'Hello!' }])
const last = answerOf([{ type: 'text', text: 'Bye.' }])
const makes = Object.entries(packages).filter(([name]) => name.startsWith('anthropic'))
const cases = makes.flatMap(([name, make]) => [true, false].map((stream) => ({ name, make, stream })))

interface Sent {
  messages: { role: string; content: { type: string; content?: string }[] }[]
}
const answers = (request: unknown) =>
  (request as Sent).messages.filter(({ role }) => role === 'assistant').flatMap(({ content }) => content)

describe.each(cases)(
  "Anthropic's summary of the transcript ($name, stream: $stream)",
  ({ name, make, stream }) => {
    it('is not part of the answer, and is sent back in its place', async () => {
      const { url, sent } = await serverOf([compacted, last])
      const agent = createAgent({ model: languageModel(make(url)), store: memoryStore(), stream })
      const run = agent.run('Hello.', { session: 's' })
      const events: AgentEvent[] = []
      run.events$.subscribe((event) => void events.push(event))
      expect(await run.result).toMatchObject({ state: 'COMPLETED', output: 'Hello!', steps: 1 })
      expect(events.flatMap((event) => (event.type === 'stream_chunk' ? [event.text] : [])).join('')).toBe(
        'Hello!',
      )
      // Both requests and the cached tokens are charged.
      expect((await run.result).usage).toMatchObject({
        inputTokens: 55_320,
        outputTokens: 133,
        cachedInputTokens: 100,
      })

      expect(await agent.run('And?', { session: 's' }).result).toMatchObject({ output: 'Bye.' })
      expect(answers(sent[1])).toMatchObject([summary, { type: 'text', text: 'Hello!' }])
    })

    it('is sent back with an answer that a shield changed, but not if it was refused itself', async () => {
      for (const [word, wanted] of [
        ['Hello', ['compaction', 'text']],
        ['greeted', ['text']],
      ] as const) {
        const { url, sent } = await serverOf([compacted, last])
        const shields = {
          output: [patternShield({ name: 'w', patterns: [new RegExp(word)], action: 'redact' })],
        }
        const agent = createAgent({ model: languageModel(make(url)), store: memoryStore(), stream, shields })
        await agent.run('Hi.', { session: 's' }).result
        await agent.run('And?', { session: 's' }).result
        expect(answers(sent[1]).map(({ type }) => type)).toEqual(wanted)
        expect(JSON.stringify(answers(sent[1]))).not.toContain(word)
      }
    })

    it('comes before the calls of an answer, which are executed', async () => {
      const use = { type: 'tool_use', id: 'toolu_1', name: 'add', input: { a: 1 } }
      const { url, sent } = await serverOf([answerOf([summary, use], 'tool_use'), last])
      const add = tool('add', () => 'added', { readOnly: true })
      const agent = createAgent({ model: languageModel(make(url)), tools: [add], stream })
      expect(await agent.run('Add.').result).toMatchObject({ output: 'Bye.' })
      expect(add.inputs).toEqual([{ a: 1 }])
      expect(answers(sent[1])).toMatchObject([summary, { type: 'tool_use', id: 'toolu_1' }])
    })

    it('alone is an error with a remedy, because the model pauses', async () => {
      const { url, sent } = await serverOf([answerOf([summary], 'compaction')])
      const agent = createAgent({ model: languageModel(make(url)), stream })
      const result = await agent.run('Hello.').result
      // A v4 stream ends without a finish reason here, so the incomplete answer is retried.
      const isUntold = stream && name.endsWith('v4')
      expect(result).toMatchObject({
        state: 'ERROR',
        error: isUntold
          ? { code: 'incomplete_response' }
          : { code: 'unsupported_pause', message: expect.stringContaining('pauseAfterCompaction') },
      })
      if (!isUntold) expect(sent).toHaveLength(1)
    })
  },
)

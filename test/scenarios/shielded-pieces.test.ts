import { type AgentOptions, patternShield, secretsShield } from '../../src/index.js'
import type { Turn } from '../../src/rehearsal/index.js'
import { memoryStore } from '../../src/core/sessions/store/memory-store.js'
import { placesOf } from '../support/places.js'
import { type Play, stage } from '../support/play.js'
import { text } from '../support/tools.js'
import { sampledRows } from '../support/extent.js'

/** The answer, cut off at the output limit after each piece except the last. */
function pieces(...parts: string[]): Turn[] {
  return parts.map((part, i) =>
    text(part, { chunkSize: 5, finishReason: i < parts.length - 1 ? 'length' : 'stop' }),
  )
}

const block = patternShield({ name: 'block', patterns: [/project falcon/i], action: 'block' })
const redact = patternShield({ name: 'redact', patterns: [/project falcon/gi], action: 'redact' })
const long = 'More of it follows. '.repeat(40)

function streamed(run: Play): string {
  return run
    .of('stream_chunk')
    .map((chunk) => chunk.text)
    .join('')
}

describe.each(sampledRows([true, false]))('an answer in pieces, streamed: %p', (stream) => {
  test.each([
    ['two', ['It is project fal', 'con, as you know.']],
    ['three', ['It is pro', 'ject fal', 'con, as you know.']],
    ['long', [`${long} It is project fal`, `con. ${long}`]],
    ['a short and a long', ['Project f', `alcon. ${long}`]],
  ])('is blocked if forbidden text spans its pieces (%s)', async (_, parts) => {
    const store = memoryStore()
    const play = await stage([...pieces(...parts), text('Fine.')], {
      shields: { output: [block], holdBack: 50 },
      guardrails: { maxTokensRecoveries: 5 },
      stream,
      store,
    })
    const run = play.run('Go.', { session: 's' })
    const result = await run.end(parts.length)
    expect(result).toMatchObject({ state: 'BLOCKED', reason: 'shield', output: '' })
    expect(streamed(run)).toBe(parts.slice(0, -1).join(''))
    const { messages } = await play.agent.replay('s')
    const head = parts[0]?.slice(-9) ?? ''
    expect(placesOf(head, { messages, result })).toEqual([])
    await play.run('And now?', { session: 's' }).run.result
    expect(placesOf(head, play.wire(-1))).toEqual([])
  })

  test('is shown and stored completely if all of it is cleared', async () => {
    const parts = [`${long}It is pro`, `ject heron. ${long}`, 'The end.']
    const play = await stage(pieces(...parts), { shields: { output: [block], holdBack: 50 }, stream })
    const run = play.run()
    const result = await run.end(3)
    expect(result).toMatchObject({ state: 'COMPLETED', output: parts.join('') })
    expect(streamed(run)).toBe(parts.join(''))
    expect(run.of('assistant_message').map(({ message }) => message.content)).toEqual(parts)
  })

  test('is redacted if all of the forbidden text is in a later piece', async () => {
    const play = await stage(pieces('It is ', 'project falcon.'), { shields: { output: [redact] }, stream })
    const result = await play.run().end(2)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'It is [redacted pattern 1].' })
  })

  test('is blocked if a redaction would reach text that was already shown', async () => {
    const play = await stage(pieces('It is project fal', 'con.'), { shields: { output: [redact] }, stream })
    const run = play.run()
    const result = await run.end(2)
    expect(result).toMatchObject({ state: 'BLOCKED', output: '' })
    expect(result.error?.message).toContain('already shown')
    expect(placesOf('project fal', result)).toEqual([])
  })

  test('shows no end of a key whose start was redacted', async () => {
    const key = `sk-${'a1'.repeat(30)}`
    const play = await stage(pieces(`It is ${key.slice(0, 40)}`, `${key.slice(40)}, sir.`), {
      shields: { output: [secretsShield()] },
      stream,
    })
    const run = play.run()
    const result = await run.end(2)
    expect(result).toMatchObject({ state: 'COMPLETED', output: 'It is [redacted openai], sir.' })
    expect(placesOf('a1a1', { result, events: run.events })).toEqual([])
  })
})

test('is checked as a whole in another process that continues the run', async () => {
  const store = memoryStore()
  const options: Partial<AgentOptions> = { shields: { output: [block] }, store }
  const play = await stage(pieces('It is project fal', 'con.'), options)
  await play.run('Go.', { session: 's' }).run.result
  const cleared = store.read('s').find(({ data }) => data.includes('xstate.done.actor.outputShields'))
  const fork = await play.agent.fork('s', cleared?.seq)
  const other = await stage([text('con.')], options)
  const run = await other.agent.resume(fork)
  expect(await run.result).toMatchObject({ state: 'BLOCKED', output: '' })
})

test('is forgotten with the next user message', async () => {
  const play = await stage([text('It is project fal', { finishReason: 'length' }), text('con trol.')], {
    shields: { output: [block] },
    guardrails: { maxTokensRecoveries: 0 },
    interactive: true,
  })
  const run = play.run()
  await run.event('state_changed', ({ to }) => to === 'WAITING_FOR_INPUT')
  run.run.reply('And?')
  await run.event('state_changed', ({ from, to }) => from === 'RUNNING' && to === 'WAITING_FOR_INPUT')
  await run.event('assistant_message', ({ message }) => message.content === 'con trol.')
})

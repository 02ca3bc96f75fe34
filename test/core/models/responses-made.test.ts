import fc from 'fast-check'
import type { JsonObject } from '../../../machines/agent/json.js'
import { type AgentOptions, createAgent, memoryStore, patternShield } from '../../../src/index.js'
import { added, ask, both, completed, delta, done, local, thought, words } from './responses-support.js'
import { events, serve } from './server.js'
import { sampled } from '../../support/extent.js'

const png = 'iVBORw0KGgo='
const drawn = (more: object = {}) => ({
  id: 'ig_1',
  type: 'image_generation_call',
  status: 'completed',
  background: 'opaque',
  output_format: 'png',
  quality: 'high',
  revised_prompt: 'A heron.',
  result: png,
  ...more,
})
const picture = { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }

const input = (body: JsonObject | undefined) => (body ?? {})['input'] as JsonObject[]

/** Two messages to an agent whose model answers the first with these items. */
async function drawing(items: object[], options: Partial<AgentOptions> = {}) {
  let answered = 0
  await using server = await serve((response, seen) => {
    events(completed(answered++ === 0 ? items : [words('Done.')]))(response, seen)
  })
  const agent = createAgent({ model: local(server.baseURL), store: memoryStore(), ...options })
  const hosted: unknown[] = []
  const run = agent.run('Draw a heron.', { session: 's' })
  for await (const event of run)
    if (event.type === 'step_completed' && event.stepType === 'hosted') hosted.push(event.payload)
  const first = await run.result
  const second = await agent.run('Another.', { session: 's' }).result
  return { first, second, hosted, bodies: server.requests.map(({ body }) => body as JsonObject) }
}

describe('a picture that the provider generated', () => {
  const answer = [thought(), drawn(), words('')]

  test('is the answer, paid for once, and is sent back as the same item', async () => {
    const { first, second, hosted, bodies } = await drawing(answer)
    expect(first).toMatchObject({
      state: 'COMPLETED',
      steps: 1,
      output: expect.stringMatching(/^\[image: image\/png, 8 bytes/),
    })
    expect(first.messages[1]).toMatchObject({ media: [picture] })
    // Stored once and emitted once, because a picture can take megabytes.
    expect(JSON.stringify(first.messages).split(png)).toHaveLength(2)
    expect(JSON.stringify(hosted)).not.toContain(png)
    expect(second.output).toBe('Done.')
    expect(input(bodies[1]).slice(1, 4)).toEqual([
      thought(),
      { id: 'ig_1', type: 'image_generation_call', status: 'completed', result: png },
      words(''),
    ])
  })

  test.each([
    ['without any message', [drawn()]],
    ['of an unnamed type', [drawn({ output_format: null })]],
  ])('is the answer %s', async (_how, items) => {
    const { first } = await drawing(items)
    expect(first).toMatchObject({ state: 'COMPLETED', steps: 1 })
    expect(first.messages[1]).toMatchObject({ media: [picture] })
  })

  test('arrives next to text', async () => {
    const { first, bodies } = await drawing([drawn(), words('A heron.')])
    expect(first.output).toBe('A heron.')
    expect(first.messages[1]).toMatchObject({ content: 'A heron.', media: [picture] })
    expect(input(bodies[1])[1]).toMatchObject({
      type: 'image_generation_call',
      result: png,
    })
  })

  test('is missing if nothing was drawn, and such an answer is empty', async () => {
    const { first } = await drawing([drawn({ result: null, status: 'failed' }), words('')])
    expect(first.messages[1]).not.toHaveProperty('media')
    // The retry's answer.
    expect(first.output).toBe('Done.')
  })

  test('is not sent back if a shield has redacted its answer', async () => {
    const shield = patternShield({ name: 'word', patterns: [/secret/], action: 'redact' })
    const { bodies } = await drawing([drawn(), words('A secret heron.')], { shields: { output: [shield] } })
    expect(JSON.stringify(bodies[1])).not.toContain('secret heron')
  })
})

describe('the sources of an answer', () => {
  const cited = (annotations: object[]) =>
    words('See.', { content: [{ type: 'output_text', text: 'See.', annotations }] })

  test.each(both)('are emitted (%s), each source once', async (_how, answer) => {
    const page = {
      type: 'url_citation',
      url: 'https://herons.test',
      title: 'Herons',
      start_index: 0,
      end_index: 4,
    }
    const { response } = await ask(
      answer([
        cited([
          page,
          { ...page, start_index: 9, end_index: 12 },
          { type: 'file_citation', file_id: 'file-1', filename: 'herons.pdf', index: 3 },
          { type: 'container_file_citation', container_id: 'c', file_id: 'cfile_1', filename: 'plot.png' },
          { type: 'file_path', file_id: 'file-2', index: 1 },
        ]),
      ]),
    )
    expect(response.annotations).toEqual([
      { type: 'url_citation', url_citation: { url: 'https://herons.test', title: 'Herons' } },
      { type: 'file_citation', file_citation: { filename: 'herons.pdf' } },
      { type: 'file_citation', file_citation: { filename: 'plot.png' } },
    ])
  })

  test('are in the message of the transcript', async () => {
    const { first } = await drawing([cited([{ type: 'url_citation', url: 'https://herons.test' }])])
    expect(first.messages[1]).toMatchObject({
      annotations: [{ type: 'url_citation', url_citation: { url: 'https://herons.test' } }],
    })
  })
})

describe('parts whose numbers differ between an item and its events', () => {
  const at = (content_index: number, text: string, type = 'delta') => ({
    type: `response.output_text.${type}`,
    output_index: 0,
    content_index,
    ...(type === 'delta' ? { delta: text } : { text }),
  })

  test('are shown once', async () => {
    const { response, shown } = await ask(
      events(
        added(0, { type: 'message', role: 'assistant', content: [] }),
        at(1, 'Hel'),
        at(1, 'lo'),
        at(0, 'Hello', 'done'),
        done(0, words('Hello')),
        completed([words('Hello')]),
      ),
    )
    expect([shown.text, response.text]).toEqual(['Hello', 'Hello'])
  })

  test('of reasoning are shown once', async () => {
    const content = ['One.', 'Two.'].map((text) => ({ type: 'reasoning_text', text }))
    const { response, shown } = await ask(
      events(
        added(0, { type: 'reasoning', summary: [] }),
        ...['One.', 'Two.'].map((text, i) => ({
          type: 'response.reasoning_text.delta',
          output_index: 0,
          content_index: i + 1,
          delta: text,
        })),
        done(0, thought('x', { content })),
        completed([thought('x', { content }), words('Hi')]),
      ),
    )
    expect([response.reasoning, shown.reasoning]).toEqual(['One.\n\nTwo.', 'One.\n\nTwo.'])
  })

  test('are shown exactly as answered, with any numbers', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ minLength: 1, maxLength: 3 }), { minLength: 1, maxLength: 5 }),
        fc.nat(3),
        fc.constantFrom('none', 'parts', 'item'),
        async (pieces, first, reported) => {
          const whole = pieces.join('')
          const { response, shown } = await ask(
            events(
              added(0, { type: 'message', role: 'assistant', content: [] }),
              ...pieces.map((text, i) => at(first + (i % 2 === 0 || reported === 'parts' ? 0 : 1), text)),
              ...(reported === 'parts' ? [at(0, whole, 'done')] : []),
              ...(reported === 'item' ? [done(0, words(whole))] : []),
              completed([words(whole)]),
            ),
          )
          return shown.text === response.text && response.text === whole
        },
      ),
      { numRuns: sampled(40) },
    )
  })

  test('are complete if no item repeats them', async () => {
    const { response } = await ask(
      events(added(0, { type: 'message' }), delta(0, 'A'), at(2, 'B'), completed()),
    )
    expect(response.text).toBe('AB')
  })
})

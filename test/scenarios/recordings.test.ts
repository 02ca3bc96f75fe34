import { existsSync, readFileSync } from 'node:fs'
import type { Turn } from '../../src/rehearsal/index.js'
import { stage } from '../support/play.js'
import { tool } from '../support/tools.js'

const recordings = '../shared/recordings'
const found = existsSync(`${recordings}/LOOPS.json`)
if (!found) console.warn(`Skipped: no recorded loops at ${recordings}`)

interface Loop {
  file: string
  api: string
  finalText: string
}

interface Recorded {
  role: string
  content: string | null
  tool_call_id?: string
}

/** An item of the Responses API's input. */
interface Item {
  type?: string
  role?: string
  content?: string
  call_id?: string
  output?: string
}

interface Tape {
  interactions: {
    request: { body: { messages: Recorded[]; input?: Item[] } }
    response: { status: number; headers: Record<string, string>; body: string }
    expected: { text: string; toolCalls: { name: string }[] }
  }[]
}

type Interaction = Tape['interactions'][number]

/** One conversation of a tape. Each run is a user message and its answers. */
type Conversation = { ask: string; interactions: Interaction[] }[]

;(found ? describe : describe.skip)('recorded loops', () => {
  const loops = found
    ? (read('LOOPS.json') as Loop[]).filter(({ api, finalText }) => api === 'chat' && finalText)
    : []
  let played = 0

  it.each(loops.map(({ file, finalText }) => [file.split('/').at(-1), file, finalText]))(
    'end as they were recorded: %s',
    async (_name, file, finalText) => {
      let last = ''
      for (const conversation of conversations(read(file) as Tape)) last = await replay(conversation)
      expect(last.startsWith(finalText)).toBe(true)
      played++
    },
  )

  it('are all replayed', () => {
    console.log(`loops: ${played} of ${loops.length}`)
    expect(loops.length).toBeGreaterThan(8)
    expect(played).toBe(loops.length)
  })
})

;(found ? describe : describe.skip)('recorded loops of the Responses API', () => {
  const loops = found ? (read('LOOPS.json') as Loop[]).filter(({ api }) => api === 'responses') : []
  let played = 0

  it.each(loops.map(({ file, finalText }) => [file.split('/').at(-1), file, finalText]))(
    'end as they were recorded, with requests that a strict server accepts: %s',
    async (_name, file, finalText) => {
      const { interactions } = read(file) as Tape
      const inputs = interactions.flatMap(({ request }) => request.body.input ?? [])
      const results = inputs.flatMap(({ type, output }) =>
        type === 'function_call_output' ? [output ?? ''] : [],
      )
      const outputs = [...new Set(results)]
      const names = new Set(
        interactions.flatMap(({ expected }) => expected.toolCalls.map(({ name }) => name)),
      )
      // A result is sent again with every later request, so the calls are answered in their order.
      const theatre = await stage(interactions.map(asTurn), {
        tools: [...names].map((name) => tool(name, () => outputs.shift() ?? 'ok')),
        api: 'responses',
      })
      const ask = inputs.find(({ role }) => role === 'user')?.content ?? 'Go.'
      const result = await theatre.run(ask).end(interactions.length)
      expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn' })
      expect(result.output.startsWith(finalText)).toBe(true)
      const { input } = (theatre.requests.at(-1)?.sent ?? {}) as { input?: unknown }
      expect(sentItems(input)).toEqual(sentItems(interactions.at(-1)?.request.body.input))
      played++
    },
  )

  it('are all replayed', () => {
    console.log(`responses loops: ${played} of ${loops.length}`)
    expect(loops.length).toBe(5)
    expect(played).toBe(loops.length)
  })
})

/** The calls and their results, which two clients would send alike. */
function sentItems(input: unknown): unknown[] {
  return ((input ?? []) as Item[])
    .filter(({ type }) => type === 'function_call' || type === 'function_call_output')
    .map(({ type, output = null }) => [type, output])
}

/** Plays the runs of one conversation in one session and returns its last answer. */
async function replay(conversation: Conversation): Promise<string> {
  const all = conversation.flatMap(({ interactions }) => interactions)
  const results = all.flatMap(({ request }) => resultsOf(request.body.messages))
  const names = new Set(all.flatMap(({ expected }) => expected.toolCalls.map(({ name }) => name)))
  const tools = [...names].map((name) =>
    tool(name, (_input, { callId }) => new Map(results).get(callId) ?? 'ok'),
  )
  const theatre = await stage(all.map(asTurn), { tools })
  let output = ''
  let calls = 0
  for (const { ask, interactions } of conversation) {
    const result = await theatre.run(ask, { session: 's' }).end((calls += interactions.length))
    const recorded = interactions.at(-1)?.expected.text
    expect(result).toMatchObject({ state: 'COMPLETED', reason: 'end_turn', output: recorded })
    output = result.output
  }
  return output
}

/** A tape may hold several conversations. A request with an unknown user message starts a new one. */
function conversations({ interactions }: Tape): Conversation[] {
  const found: Conversation[] = []
  let requestCount = 0
  let length = Infinity
  for (const interaction of interactions) {
    const { messages } = interaction.request.body
    const users = messages.filter(({ role }) => role === 'user').map(({ content }) => content ?? '')
    if (messages.length <= length && users.length === 1) {
      found.push([])
      requestCount = 0
    }
    const conversation = found.at(-1)
    if (users.length > requestCount) conversation?.push({ ask: users.at(-1) ?? '', interactions: [] })
    conversation?.at(-1)?.interactions.push(interaction)
    requestCount = users.length
    length = messages.length
  }
  return found
}

function asTurn({ response: { status, headers, body } }: Interaction): Turn {
  return { raw: { status, headers, body } }
}

/** Recorded results by call id. */
function resultsOf(messages: readonly Recorded[]): [string, string][] {
  return messages.flatMap(({ role, tool_call_id: id, content }) =>
    role === 'tool' && id !== undefined ? [[id, content ?? ''] as [string, string]] : [],
  )
}

function read(file: string): unknown {
  return JSON.parse(readFileSync(`${recordings}/${file}`, 'utf8'))
}

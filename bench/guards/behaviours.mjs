// Behaviors on the live agent. A policy replaces the model. It requests calls and reads their results. Honest policies finish. Stuck
// policies never finish. Each policy is a generator that yields the calls of one response and receives their results. A test runs
// the policies on the sources, so this file has no imports.

/** The number of responses after which an unstopped behavior is abandoned. */
const longest = 500

const honest = []
const stuck = []

/** @param open opens the tools and the policy; the `useful` calls of a stuck policy count as work */
const work = (name, open) => honest.push({ name, open })
const loop = (name, open) => stuck.push({ name, open })

/** A tool. `polls` marks tools that wait for an external change. */
const tool = (execute, traits = {}) => ({ execute, ...traits })
const reads = (execute, traits = {}) => tool(execute, { readOnly: true, ...traits })
const polls = (execute, traits = {}) => tool(execute, { readOnly: true, polls: true, ...traits })
const fail = (message, more) => {
  throw Object.assign(new Error(message), more)
}
const letters = 'abcdefghijklmnopqrstuvwxyz'
const word = (n) => letters[n % 26].repeat((n % 5) + 2) + letters[(n * 7) % 26] + letters[(n * 3 + 1) % 26]
const page = (text) => text.padEnd(900, ' This item is sold out, and no date is known.')
const range = (count) => Array.from({ length: count }, (_, n) => n)

/** Polls with one call until the result contains the word. */
function* until(name, input, end) {
  for (;;) {
    const [result] = yield [[name, input]]
    if (result.includes(end)) return
  }
}

work('polling "Provisioning" for an hour', () => {
  let looks = 0
  const status = polls(() => (++looks < 120 ? 'Provisioning' : 'Ready'))
  return { tools: { get_cluster: status }, policy: () => until('get_cluster', { name: 'blue' }, 'Ready') }
})

work('a log that grows every twelfth read', () => {
  let looks = 0
  const tail = polls(() =>
    range(1 + Math.floor(++looks / 12))
      .map((n) => `stage ${word(n)}`)
      .join('\n'),
  )
  const policy = function* () {
    for (let n = 0; n < 96; n++) yield [['tail_log', { lines: 20 }]]
  }
  return { tools: { tail_log: tail }, policy }
})

work('polling an inbox until a person answers', () => {
  let looks = 0
  const inbox = polls(() => (++looks < 60 ? 'No new messages.' : 'From Ada: go ahead.'))
  return { tools: { check_inbox: inbox }, policy: () => until('check_inbox', {}, 'Ada') }
})

work('two sensors, read alternately', () => {
  const sensor = polls(({ id }) => (id === 'door' ? 'closed' : 'dark'))
  const policy = function* () {
    for (let n = 0; n < 80; n++) yield [['read_sensor', { id: n % 2 ? 'door' : 'lamp' }]]
  }
  return { tools: { read_sensor: sensor }, policy }
})

work('a stock ticker while the market is closed', () => {
  let looks = 0
  const quote = polls(() => (++looks < 50 ? 'ACME 12.50, market closed' : 'ACME 12.61, market open'))
  return { tools: { get_quote: quote }, policy: () => until('get_quote', { symbol: 'ACME' }, 'open') }
})

work("a supervisor's heartbeat", () => {
  const beat = polls(() => 'alive')
  const policy = function* () {
    for (let n = 0; n < 60; n++) yield [['heartbeat', { worker: 3 }]]
  }
  return { tools: { heartbeat: beat }, policy }
})

work('nine 429 responses before a success', () => {
  let tries = 0
  const fetch = reads(() =>
    ++tries <= 9 ? 'Error 429: Too Many Requests. Retry after 20 s.' : '{"total": 12}',
  )
  return { tools: { get_report: fetch }, policy: () => until('get_report', { month: 5 }, 'total') }
})

work('inserting a hundred rows, the first thirty rejected', () => {
  const insert = tool(({ row }) =>
    row < 30 ? fail(`Row ${row}: the price '${word(row)}' is not a number.`) : 'inserted',
  )
  const policy = function* () {
    for (const row of range(100)) yield [['insert_row', { row, name: word(row) }]]
  }
  return { tools: { insert_row: insert }, policy }
})

work('exploring a maze by depth-first search', () => {
  const size = 12
  const sides = { north: [0, -1], east: [1, 0], south: [0, 1], west: [-1, 0] }
  const back = { north: 'south', south: 'north', east: 'west', west: 'east' }
  const isOpen = (x, y) =>
    x >= 0 && y >= 0 && x < size && y < size && ((x % 2 === 0 && y % 2 === 0) || (x * 31 + y * 17) % 3 > 0)
  let [x, y] = [0, 0]
  const move = tool(({ to }) => {
    const [dx, dy] = sides[to]
    if (!isOpen(x + dx, y + dy)) return 'A wall.'
    x += dx
    y += dy
    return `You are at ${x}, ${y}.`
  })
  const seen = new Set(['0, 0'])
  const visit = function* () {
    for (const to of Object.keys(sides)) {
      const [result] = yield [['move', { to }]]
      const at = /at (.*)\./.exec(result)?.[1]
      if (at === undefined) continue
      if (!seen.has(at)) {
        seen.add(at)
        yield* visit()
      }
      yield [['move', { to: back[to] }]]
    }
  }
  return { tools: { move }, policy: visit }
})

work('reading a catalogue of sold-out items by id', () => {
  const item = reads(() => page('Sold out.'))
  const policy = function* () {
    for (const id of range(60)) yield [['get_item', { id }]]
  }
  return { tools: { get_item: item }, policy }
})

work('a form that is read after each field', () => {
  const look = reads(() => 'a form with fourteen fields')
  const fill = tool(({ field }) => `${field} is filled in`)
  const policy = function* () {
    for (const n of range(14))
      yield [
        ['fill', { field: word(n) }],
        ['screenshot', {}],
      ]
  }
  return { tools: { screenshot: look, fill }, policy }
})

work('a status that is clean nineteen times, then dirty', () => {
  let looks = 0
  const status = reads(() => (++looks < 20 ? 'clean' : `changed by somebody else: ${looks}`))
  const run = reads(({ step }) => `did ${step}`)
  const policy = function* () {
    for (const n of range(26)) {
      yield [['run', { step: word(n) }]]
      yield [['git_status', {}]]
    }
  }
  return { tools: { git_status: status, run }, policy }
})

work('fetching the next delivery forty times', () => {
  let days = 0
  const next = tool(() => new Date(Date.UTC(2026, 2, 1 + days++)).toISOString().slice(0, 10))
  const policy = function* () {
    for (let n = 0; n < 40; n++) yield [['next_delivery', {}]]
  }
  return { tools: { next_delivery: next }, policy }
})

work('the same failing test after each of forty edits', () => {
  const edit = tool(() => 'Edited.')
  const test = tool(() => fail('1 failed, 12 passed'))
  const policy = function* () {
    for (const line of range(40)) {
      yield [['edit', { line, text: word(line) }]]
      yield [['test', {}]]
    }
  }
  return { tools: { edit, test }, policy }
})

work('waiting for a job, one minute at a time', (clock) => {
  let looks = 0
  const wait = reads(() => {
    clock.increment(60_000)
    return ++looks < 90 ? page('Step 3 of 9.') : 'Finished.'
  })
  return { tools: { wait_for_job: wait }, policy: () => until('wait_for_job', { id: 7 }, 'Finished') }
})

work('fifty lookups of unknown names', () => {
  const search = reads(() => '[]')
  const policy = function* () {
    for (const n of range(50)) yield [['search', { name: word(n) }]]
  }
  return { tools: { search }, policy }
})

/** Never finishes. `step(n)` returns the calls of the nth response. */
const always = (step) =>
  function* () {
    for (let n = 0; ; n++) yield step(n)
  }

loop('the same call', () => ({
  tools: { look: reads(() => 'nothing here') },
  policy: always(() => [['look', { at: 'a' }]]),
  useful: 1,
}))

loop('the same call, with a clock in its result', () => {
  let n = 0
  const look = tool(
    () => `10:${String(n % 60).padStart(2, '0')}:${String((n++ * 7) % 60).padStart(2, '0')} nothing here`,
  )
  return { tools: { look }, policy: always(() => [['look', {}]]), useful: 1 }
})

loop('two alternating calls', () => ({
  tools: { look: reads(({ at }) => `nothing at ${at}`) },
  policy: always((n) => [['look', { at: n % 2 ? 'a' : 'b' }]]),
  useful: 2,
}))

loop('a cycle of five files', () => ({
  tools: { read: reads(({ path }) => page(path)) },
  policy: always((n) => [['read', { path: letters[n % 5] }]]),
  useful: 5,
}))

loop('a missing shell command, on a different line each time', () => {
  let line = 0
  const shell = tool(() => fail(`/bin/bash: line ${++line}: jq: command not found`))
  return { tools: { shell }, policy: always((n) => [['shell', { command: `jq .${word(n)}` }]]), useful: 1 }
})

loop('different calls, each with a different failure', () => ({
  tools: { shell: tool(({ command }) => fail(`unexpected '${command}'`)) },
  policy: always((n) => [['shell', { command: word(n) + n }]]),
  useful: 1,
}))

loop('tools that do not exist', () => ({
  tools: { look: reads(() => '') },
  policy: always((n) => [[`fly_${word(n)}`, {}]]),
  useful: 1,
}))

loop('a denied action, requested in different words', () => ({
  tools: {
    pay: tool(() => {
      throw new ToolError('policy_denied', 'Payments are not allowed.')
    }),
  },
  policy: always((n) => [['pay', { to: word(n) }]]),
  useful: 1,
}))

loop('an unavailable service', () => ({
  tools: { fetch: reads(() => fail('connect ECONNREFUSED 10.0.0.1:443')) },
  policy: always(() => [['fetch', { url: 'https://example.com' }]]),
  useful: 1,
}))

loop('reworded searches without results', () => ({
  tools: { search: reads(() => 'No results.') },
  policy: always((n) => [['search', { query: `${word(n)} ${word(n + 5)} ${n}` }]]),
  useful: 5,
}))

loop('reading pages after the last one', () => ({
  tools: { list: reads(() => page('No more entries.')) },
  policy: always((n) => [['list', { page: n }]]),
  useful: 5,
}))

loop('the same call together with a note', () => ({
  tools: { look: reads(() => 'nothing'), note: tool(({ text }) => `kept ${text}`) },
  policy: always((n) => [
    ['look', {}],
    ['note', { text: `still looking, ${n}` }],
  ]),
  useful: 2,
}))

loop('a counter in the result', () => {
  let n = 0
  return {
    tools: { connect: tool(() => `attempt ${++n} did not succeed`) },
    policy: always(() => [['connect', {}]]),
    useful: 1,
  }
})

loop('the same call four times, then a new one', () => ({
  tools: { look: reads(({ at }) => `nothing at ${at}`) },
  policy: always((n) => [['look', { at: n % 5 === 4 ? `place ${n}` : 'a' }]]),
  useful: 1,
}))

loop('an edit and its undo, around a failing test', () => ({
  tools: { edit: tool(() => 'Edited.'), test: tool(() => fail('1 failed')) },
  policy: always((n) => [n % 2 ? ['test', {}] : ['edit', { text: n % 4 ? 'a' : 'b' }]]),
  useful: 4,
}))

loop('reading ninety files in a loop', () => ({
  tools: { read: reads(({ path }) => page(`file ${path}`)) },
  policy: always((n) => [['read', { path: `${n % 90}.ts` }]]),
  useful: 90,
}))

export const behaviours = { honest, stuck }

/**
 * Runs a behavior on an agent with the default policy.
 * @param library `createAgent` and `defineTool` of Statewright, `SimulatedClock` of XState
 * @param marksPolling whether the waiting tools are `polling`
 */
export async function playBehaviour(
  { createAgent, defineTool, SimulatedClock },
  { open },
  marksPolling = false,
) {
  const clock = new SimulatedClock()
  const { tools, policy, useful = 0 } = open(clock)
  const calls = policy()
  let [executed, responses] = [0, 0]
  const defined = Object.entries(tools).map(([name, { execute, readOnly = false, polls: isPoll = false }]) =>
    defineTool({
      name,
      description: `The tool ${name}.`,
      input: { type: 'object' },
      readOnly,
      polling: marksPolling && isPoll,
      execute: (input) => {
        executed += 1
        return execute(input)
      },
    }),
  )
  const request = ({ messages, tools: offered }) => {
    const results = messages.slice(messages.findLastIndex(({ role }) => role !== 'tool') + 1)
    const isAsked = offered.length > 0 && responses < longest
    const next = isAsked ? calls.next(results.map(({ content }) => content)) : { done: true }
    if (next.done) return Promise.resolve({ ...answer, text: 'Done.' })
    responses += 1
    const toolCalls = next.value.map(([name, input], n) => ({
      id: `call_${responses}_${n}`,
      type: 'function',
      function: { name, arguments: JSON.stringify(input) },
    }))
    return Promise.resolve({ ...answer, toolCalls, finishReason: 'tool_calls' })
  }
  const agent = createAgent({
    model: { provider: 'behaviour', model: 'behaviour-1', request },
    clock,
    tools: defined,
    limits: { maxSteps: null },
  })
  const run = agent.run('Go.')
  const seen = { nudge: 0, block: 0, halt: 0 }
  let rule = null
  run.events$.subscribe((event) => {
    if (event.type !== 'guardrail') return
    seen[event.action] += 1
    if (event.action === 'halt') rule = event.rule ?? event.guard
  })
  const { state } = await run.result
  if (state === 'PAUSED') run.cancel()
  return {
    isHalted: state !== 'COMPLETED',
    rule,
    responses,
    wasted: Math.max(0, executed - useful),
    nudged: seen.nudge > 0,
    blocked: seen.block > 0,
  }
}

const answer = {
  text: '',
  reasoning: '',
  refusal: null,
  toolCalls: [],
  finishReason: 'stop',
  complete: true,
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 },
  model: 'behaviour-1',
}

import { readdirSync, readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import type OpenAI from 'openai'
import { largestExpense, parseScenario } from '../../src/rehearsal/index.js'
import { clientOf, start } from './support.js'

/** The demo's tools, written as plainly as possible. */
const tools: Record<string, (input: { path: string; expression: string }) => string> = {
  list_files: () => readdirSync('examples/notes').sort().join('\n'),
  read_file: ({ path }) => readFileSync(`examples/notes/${path}`, 'utf8'),
  calculate: ({ expression }) => String(runInNewContext(expression)),
}

/** A plain agent loop over the real client. It records its observations. */
async function perform() {
  const rehearsal = await start(largestExpense)
  const client = clientOf(rehearsal)
  const messages: OpenAI.ChatCompletionMessageParam[] = [
    { role: 'user', content: 'What was the largest expense?' },
  ]
  const seen = {
    statuses: [] as number[],
    finish: [] as string[],
    results: [] as string[],
    answer: '',
    parallel: 0,
  }
  for (;;) {
    if (rehearsal.remaining === 0) return seen
    const response = await client.chat.completions
      .create({ model: 'rehearsal', messages })
      .catch((error: { status: number }) => error)
    if ('status' in response) {
      seen.statuses.push(response.status)
      continue
    }
    const choice = response.choices[0]
    if (!choice) throw new Error('No choice.')
    seen.finish.push(choice.finish_reason)
    const { content, tool_calls: calls = [] } = choice.message
    messages.push(choice.message)
    seen.parallel = Math.max(seen.parallel, calls.length)
    for (const call of calls) {
      if (call.type !== 'function') throw new Error('Not a function.')
      const content = tools[call.function.name]?.(JSON.parse(call.function.arguments)) ?? 'unknown tool'
      seen.results.push(content)
      messages.push({ role: 'tool', tool_call_id: call.id, content })
    }
    if (calls.length === 0) {
      seen.answer += content
      messages.push({ role: 'user', content: 'Continue.' })
    }
  }
}

describe('the scenario of npm start', () => {
  test('is rate limited once, calls tools in parallel, is truncated once, and completes', async () => {
    const { statuses, finish, parallel } = await perform()
    expect(statuses).toEqual([429])
    expect(finish).toEqual(['tool_calls', 'tool_calls', 'tool_calls', 'length', 'stop'])
    expect(parallel).toBe(3)
  })

  test('only states facts that its tools find in the notes', async () => {
    const { results, answer } = await perform()
    expect(results[0]).toBe('laptops.txt\noffsite.txt\nsoftware.txt')
    const totals = results.slice(-3).map(Number)
    expect(totals).toEqual([3616.5, 3851.7, 984])
    const amounts = totals.map((total) => total.toLocaleString('en', { minimumFractionDigits: 2 }))
    expect(amounts.every((amount) => answer.includes(amount))).toBe(true)
    expect(answer).toMatch(`team offsite in Lisbon: ${amounts[1]} EUR`)
  })

  test('calculates with the amounts of the notes', async () => {
    const { results } = await perform()
    const notes = results.slice(1, 4).join('\n').replaceAll(',', '')
    const calls = largestExpense.turns.flatMap((turn) => ('toolCalls' in turn ? (turn.toolCalls ?? []) : []))
    const expressions = calls.flatMap(({ name, arguments: input }) =>
      name === 'calculate' && typeof input === 'object' ? [String(input.expression)] : [],
    )
    const amounts = expressions.flatMap((expression) => expression.match(/\d+\.\d\d/g) ?? [])
    expect(amounts).toHaveLength(9)
    expect(amounts.filter((amount) => !notes.includes(` ${amount} `))).toEqual([])
  })

  test('is plain JSON that its own schema accepts', () => {
    const copy: unknown = JSON.parse(JSON.stringify(largestExpense))
    expect(copy).toEqual(largestExpense)
    expect(() => parseScenario(copy)).not.toThrow()
  })
})

import { calls, createPlace, toolsModule } from './kept.js'
import { removeFolders } from './support.js'

afterEach(removeFolders)

/** A session 'work' with three identical reads, and the options to test on it. */
async function looked() {
  const look = { toolCalls: [{ name: 'look', arguments: { at: 'a' } }] }
  const place = await createPlace({
    'work.json': { turns: [look, look, look, { text: 'Nothing.' }] },
    'other.json': calls(['l', 'look', {}]),
    'tools.mjs': toolsModule,
    'strict.json': { guardrails: { maxRepeatedToolSteps: 2 } },
    'wrong.json': { guardrails: { progress: { memory: 0 } } },
  })
  await place.run(['run', '--session', 'work', '--rehearsal=work.json', '-t', 'tools.mjs', 'Look.'])
  return place
}

describe('guards', () => {
  test('prints the decisions for a session', async () => {
    const { run } = await looked()
    const { code, out, err } = await run(['guards', 'work'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/^response 3 {2}nudge {2}no_progress \(stale\): You have called look .* 3 times/)
    expect(out).toMatch(
      /3 responses with calls: 3 calls executed, 0 refused; no guard would have stopped it\.\n$/,
    )
  })

  test('prints the decisions under another configuration', async () => {
    const { run } = await looked()
    const { code, out } = await run(['guards', 'work', '--config', 'strict.json'])
    expect(code).toBe(3)
    expect(out).toMatch(/response 3 {2}halt {2}repeated_call: .*\n.*stopped it after response 3\.\n$/)
    const { out: json } = await run(['guards', 'work', '-c', 'strict.json', '--json'])
    expect(JSON.parse(json)).toMatchObject({
      steps: 3,
      calls: { executed: 2 },
      halt: { guard: 'repeated_call' },
    })
  })

  test('refuses invalid arguments in one sentence', async () => {
    const { run } = await looked()
    const refused = async (...args: string[]) => {
      const { code, out, err } = await run(['guards', ...args])
      expect({ code, out }).toEqual({ code: 2, out: '' })
      return err
    }
    expect(await refused()).toMatch(/ID is missing/)
    expect(await refused('worc')).toMatch(/There is no session 'worc' here\. Did you mean 'work'\?/)
    expect(await refused('work', '--config', 'wrong.json')).toMatch(
      /guardrails\.progress\.memory must be a whole number from 1 to 64/,
    )
  })

  test('prints where presets would have stopped it, and the savings', async () => {
    const look = { toolCalls: [{ name: 'look', arguments: { at: 'a' } }] }
    const place = await createPlace({
      'work.json': {
        turns: [...Array.from({ length: 6 }, () => look), { text: 'Nothing.' }].map((turn) => ({
          ...turn,
          usage: { input: 90, output: 10 },
        })),
      },
      'tools.mjs': toolsModule,
      'mine.json': {},
    })
    await place.run(['run', '--session', 'work', '--rehearsal=work.json', '-t', 'tools.mjs', 'Look.'])
    const { code, out, err } = await place.run(['guards', 'work', '--preset', 'aar, openhuman,strands,aar'])
    expect({ code, err }).toEqual({ code: 3, err: '' })
    const lines = out.split('\n')
    expect(lines[0]).toBe('7 responses in the session.')
    expect(lines[1]).toMatch(/^aar: would have saved 3 responses and 3 calls \(300 tokens, /)
    expect(lines[2]).toMatch(/^ {2}stops before the calls of response 4, repeated_call/)
    expect(lines[3]).toMatch(/^openhuman: would have saved 4 responses and 3 calls \(400 tokens, /)
    expect(lines[4]).toMatch(/^ {2}stops after response 3, repeated_call/)
    expect(lines[5]).toBe('strands: would not have stopped it.')
    const one = await place.run(['guards', 'work', '--preset', 'strands'])
    expect(one.code).toBe(0)
    const { out: json } = await place.run(['guards', 'work', '--preset', 'aar', '--json'])
    expect(JSON.parse(json)).toMatchObject([
      { name: 'aar', stops: [{ step: 3, when: 'before' }], saved: { responses: 3, calls: 3, tokens: 300 } },
    ])
    for (const [args, pattern] of [
      [['--preset', 'arr'], /There is no preset 'arr'\. Did you mean 'aar'\?/],
      [['--preset', ','], /--preset needs names: aar, openhuman/],
      [['--preset', 'aar', '--config', 'mine.json'], /--preset and --config cannot be combined/],
    ] as const) {
      const refused = await place.run(['guards', 'work', ...args])
      expect(refused.code).toBe(2)
      expect(refused.err).toMatch(pattern)
    }
  })
})

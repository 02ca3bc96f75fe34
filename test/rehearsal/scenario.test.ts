import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { loadScenario, parseScenario, RehearsalError, startRehearsal } from '../../src/rehearsal/index.js'
import { sampled } from '../support/extent.js'

const circular: Record<string, unknown> = {}
circular.self = circular

describe('a mistake in a scenario', () => {
  test.each<[string, unknown]>([
    ['', null],
    ['', 'text'],
    ['turns', {}],
    ['turns', { turns: [] }],
    ['turns', { turns: 'many' }],
    ['turn', { turns: [{}], turn: {} }],
    ['onExhausted', { turns: [{}], onExhausted: 'stop' }],
    ['turns[0]', { turns: [null] }],
    ['turns[1].txt', { turns: [{}, { txt: 'Hi' }] }],
    ['turns[0].text', { turns: [{ text: 3 }] }],
    ['turns[0].toolCalls[1].name', { turns: [{ toolCalls: [{ name: 'f' }, {}] }] }],
    ['turns[0].toolCalls[0].arguments', { turns: [{ toolCalls: [{ name: 'f', arguments: 3 }] }] }],
    ['turns[0].toolCalls[0].arguments', { turns: [{ toolCalls: [{ name: 'f', arguments: circular }] }] }],
    ['turns[0].toolCalls[0].args', { turns: [{ toolCalls: [{ name: 'f', args: {} }] }] }],
    ['turns[0].usage.input', { turns: [{ usage: { input: -1, output: 0 } }] }],
    ['turns[0].usage.output', { turns: [{ usage: { input: 1 } }] }],
    ['turns[0].status', { turns: [{ status: 99 }] }],
    ['turns[0].headers', { turns: [{ headers: { 'bad name': 'x' } }] }],
    ['turns[0].headers', { turns: [{ headers: { name: 'a\nb' } }] }],
    ['turns[0].raw.headers', { turns: [{ raw: { body: '', headers: { name: '\u0000' } } }] }],
    ['turns[0].delayMs', { turns: [{ delayMs: Infinity }] }],
    ['turns[0].chunkDelayMs', { turns: [{ chunkDelayMs: Number.NaN }] }],
    ['turns[0].chunkSize', { turns: [{ chunkSize: 0 }] }],
    ['turns[0].split[0]', { turns: [{ split: [0] }] }],
    ['turns[0].hang', { turns: [{ hang: false }] }],
    ['turns[0].errorInStream.error.message', { turns: [{ errorInStream: { after: 1, error: {} } }] }],
    ['turns[0].expect.lastUser', { turns: [{ expect: { lastUser: 'x' } }] }],
  ])('is refused with its path: %s', (path, scenario) => {
    expect(() => parseScenario(scenario)).toThrow(RehearsalError)
    expect(caught(() => parseScenario(scenario))).toMatchObject({ code: 'invalid_scenario', subject: path })
  })

  test.each<[string, unknown]>([
    ['text', { status: 500, text: 'Hi' }],
    ['toolCalls', { error: { message: 'x' }, toolCalls: [] }],
    ['error', { status: 200, error: { message: 'x' } }],
    ['text', { raw: { body: '' }, text: 'Hi' }],
    ['status', { raw: { body: '' }, status: 429 }],
    ['cutAfter', { hang: true, cutAfter: 1 }],
    ['endWithout', { cutAfter: 1, endWithout: 'done' }],
    ['errorInStream', { hang: 1, errorInStream: { after: 1, error: { message: 'x' } } }],
  ])('is refused if a field would be ignored: %s', (key, turn) => {
    expect(caught(() => parseScenario({ turns: [turn] }))).toMatchObject({ subject: `turns[0].${key}` })
  })

  test('is refused in one sentence', () => {
    const error = caught(() => parseScenario({ turns: [{ txt: 'Hi' }] }))
    expect(error.message).toBe('The scenario is invalid at turns[0].txt: the key is unknown.')
  })

  test('of any kind is a typed error, never another', () => {
    const property = fc.property(fc.anything(), fc.anything(), (turn, onExhausted) => {
      for (const value of [turn, { turns: turn }, { turns: [turn], onExhausted }]) {
        try {
          parseScenario(value)
        } catch (error) {
          expect(error).toBeInstanceOf(RehearsalError)
        }
      }
    })
    fc.assert(property, { numRuns: sampled(500) })
  })

  test('stops the rehearsal before it listens, as does an invalid option', async () => {
    await expect(startRehearsal({ turns: [] })).rejects.toMatchObject({ code: 'invalid_scenario' })
    await expect(startRehearsal({ scenarios: { a: { turns: [] } } })).rejects.toMatchObject({
      message: "The scenario 'a' is invalid at turns: a scenario needs at least one turn.",
    })
    const wrong: [string, unknown][] = [
      ['', null],
      ['scenario', {}],
      ['port', { port: -1 }],
      ['prot', { prot: 1 }],
      ['clock', { clock: {} }],
      ['conversation', { conversation: 'x' }],
    ]
    for (const [subject, options] of wrong) {
      await expect(startRehearsal(options as never)).rejects.toMatchObject({
        code: 'invalid_options',
        subject,
      })
    }
  })
})

describe('a scenario file', () => {
  let folder = ''
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rehearsal-'))
  })
  afterAll(() => rm(folder, { recursive: true }))

  const load = async (text: string): Promise<unknown> => {
    const path = join(folder, 'scenario.json')
    await writeFile(path, text)
    return loadScenario(path).catch((error: unknown) => error)
  }

  test('is read and validated', async () => {
    const scenario = { name: 'hello', turns: [{ text: 'Hi' }], onExhausted: 'loop' }
    expect(await load(JSON.stringify(scenario))).toEqual(scenario)
  })

  test('that is missing, not JSON or invalid is a typed error that names it', async () => {
    const missing = join(folder, 'none.json')
    await expect(loadScenario(missing)).rejects.toMatchObject({
      code: 'unreadable_scenario',
      subject: missing,
    })
    await expect(loadScenario(folder)).rejects.toMatchObject({ code: 'unreadable_scenario' })
    expect(await load('{')).toMatchObject({ name: 'RehearsalError', code: 'invalid_scenario' })
    const error = (await load('{"turns":[{"status":"429"}]}')) as RehearsalError
    expect(error).toMatchObject({ code: 'invalid_scenario', subject: 'turns[0].status' })
    expect(error.message).toMatch(join(folder, 'scenario.json'))
  })
})

function caught(run: () => unknown): RehearsalError {
  try {
    run()
  } catch (error) {
    return error as RehearsalError
  }
  throw new Error('Nothing was thrown.')
}

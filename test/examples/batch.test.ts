import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { jest } from '@jest/globals'
import * as core from '../../src/index.js'
import * as rehearsing from '../../src/rehearsal/index.js'
import { cli } from '../cli/support.js'

const rehearsals: rehearsing.Rehearsal[] = []

async function startRehearsal(...args: Parameters<typeof rehearsing.startRehearsal>) {
  const rehearsal = await rehearsing.startRehearsal(...args)
  rehearsals.push(rehearsal)
  return rehearsal
}

jest.unstable_mockModule('statewright', () => ({ ...core }), { virtual: true })
jest.unstable_mockModule('statewright/rehearsal', () => ({ ...rehearsing, startRehearsal }), {
  virtual: true,
})

afterEach(async () => {
  await Promise.all(rehearsals.splice(0).map((rehearsal) => rehearsal.close()))
})

test('examples/batch.mjs answers each line of batch.jsonl, and makes no request the second time', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'statewright-example-'))
  const out = join(folder, 'answers.jsonl')
  const play = () =>
    cli(['batch', 'examples/batch.jsonl', '--agent', 'examples/batch.mjs', '--out', out], {
      dataFolder: join(folder, 'data'),
    })
  const first = await play()
  const answers = await readFile(out, 'utf8')
  const lines = answers
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { id: string; output?: string; error?: object; session: string })
  expect(lines.map(({ id, session, output, error }) => [id, session, output ?? error])).toEqual([
    ['april', 'batch.april', '1555 EUR.'],
    ['may', 'batch.may', '1280 EUR.'],
    ['june', 'batch.june', '1367 EUR.'],
    ['july', 'batch.july', 'I know the expenses of April, May and June.'],
  ])
  expect(first).toMatchObject({
    code: 0,
    // A slow machine prints progress before the last line.
    err: expect.stringMatching(
      /^(?:.*\n)*statewright: batch 'batch': 4\/4 done, 0 running, 0 waiting, 0 failed, \$0\.0003\.\n$/,
    ) as string,
  })
  expect(await play()).toMatchObject({ code: 0 })
  expect(await readFile(out, 'utf8')).toBe(answers)
  expect(rehearsals.map(({ requests }) => requests.length)).toEqual([7, 0])
  await rm(folder, { recursive: true, force: true })
})

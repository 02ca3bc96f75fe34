import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { jest } from '@jest/globals'
import { fromPromise } from 'xstate'
import { durable, idempotencyKey } from '../../src/durable/index.js'
import { fileStore } from '../../src/stores/file/index.js'
import { buildDurable, type Child, startChild } from '../stores/child.js'
import { makeFolder, removeFolder } from '../stores/folder.js'
import { runsAll } from '../support/extent.js'
import { claimMachine } from './claim.js'
import { tallyMachine } from './tally.js'

jest.setTimeout(300_000)

let dir: string
const built = buildDurable()
const children: Child[] = []

beforeEach(() => {
  dir = makeFolder()
})
afterEach(async () => {
  for (const child of children.splice(0)) await kill(child)
  removeFolder(dir)
})
afterAll(built.remove)

async function kill(child: Child): Promise<void> {
  child.process.kill('SIGKILL')
  await child.ended
}

function start(script: string): Child {
  const modules = 'durable, idempotencyKey, fromPromise, claimMachine, tallyMachine'
  const child = startChild(
    built.url,
    dir,
    `import { ${modules} } from ${JSON.stringify(built.url)}\n${script}`,
  )
  children.push(child)
  return child
}

/** A chance that is the same in every run. */
function createChance(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648
    return Math.floor((state / 2_147_483_648) * below)
  }
}

test('each event of two processes that are killed is accepted once, in order per sender', async () => {
  const [each, kills] = runsAll ? [2500, 10] : [100, 2]
  const chance = createChance(7)
  const store = fileStore({ dir })
  const tally = durable(tallyMachine, { store })
  await tally.start('t')
  await tally.settled('t')
  // A session knows its last 100 keys. So a sender runs at most this many events ahead of its confirmations, and stops while the
  // other repeats the events that it sent before its process was killed.
  const ahead = 10
  const send = (from: string, first: number): Child => {
    const child = start(`
      const tally = durable(tallyMachine, { store: fileStore({ dir }) })
      let free = ${ahead}
      let goOn = () => undefined
      process.stdin.on('data', ({ length }) => {
        free += length
        goOn()
      })
      for (let n = ${first}; n <= ${each}; n += 1) {
        while (free === 0) await new Promise((resolve) => (goOn = resolve))
        free -= 1
        await tally.send('t', { type: 'COUNT', from: '${from}', n }, { key: '${from}' + n })
        say(n)
      }
      process.stdin.destroy()
      await tally.settled('t')
    `)
    child.process.stdin?.on('error', () => undefined)
    return child
  }
  /** Per sender, resolves when all that it had sent before a kill was sent again. */
  const repeated: Record<string, Promise<void>> = {}
  const sendAll = async (from: string, other: string): Promise<void> => {
    let confirmed = 0
    let end = (): void => undefined
    let isRepeating = false
    for (let left = kills / 2; confirmed < each; left -= 1) {
      const first = confirmed
      const child = send(from, first + 1)
      const until = left >= 1 ? confirmed + 1 + chance(Math.ceil((2 * each) / kills)) : each
      while (confirmed < Math.min(until, each)) {
        confirmed = Number(await child.next())
        if (isRepeating && (confirmed >= first + 2 * ahead || confirmed === each)) {
          isRepeating = false
          end()
        }
        if (!isRepeating) await repeated[other]
        child.process.stdin?.write('+')
      }
      if (confirmed < each) {
        if (!isRepeating) repeated[from] = new Promise((resolve) => (end = resolve))
        isRepeating = true
        await kill(child)
      } else await child.ended
    }
  }
  await Promise.all([sendAll('a', 'b'), sendAll('b', 'a')])
  const { context } = await tally.settled('t')
  expect(context).toEqual({ last: { a: each, b: each }, faults: 0 })
  store.close()
})

test('a claim whose processes are killed after any line is paid once', async () => {
  const claims = runsAll ? 12 : 2
  const chance = createChance(11)
  const bank = join(dir, 'bank')
  const listPayments = (id: string): string[] =>
    existsSync(bank)
      ? readFileSync(bank, 'utf8')
          .split('\n')
          .filter((line) => line.startsWith(`${id}:`))
      : []
  const script = (id: string): string => `
    import { appendFileSync, existsSync, readFileSync } from 'node:fs'
    const bank = ${JSON.stringify(bank)}
    const pause = () => new Promise((resolve) => setTimeout(resolve, 5))
    const claims = durable(claimMachine, {
      store: fileStore({ dir }),
      once: ['pay'],
      actors: {
        pay: fromPromise(async ({ self }) => {
          say('before')
          await pause()
          appendFileSync(bank, idempotencyKey(self) + '\\n')
          say('after')
          await pause()
          return 'p1'
        }),
        askBank: fromPromise(async ({ self }) => {
          say('asks')
          await pause()
          const [id] = idempotencyKey(self).split(':')
          return existsSync(bank) && readFileSync(bank, 'utf8').includes(id + ':') ? 'p1' : null
        }),
      },
    })
    await claims.start('${id}', { input: { amount: 900 } })
    say('started')
    for (const text of ['one', 'two']) {
      await claims.send('${id}', { type: 'NOTE', text }, { key: text })
      say(text)
    }
    try {
      await claims.send('${id}', { type: 'APPROVE', by: 'ann' }, { key: 'approve' })
    } catch (error) {
      if (error.code !== 'session_ended') throw error
    }
    say('approved')
    await claims.settled('${id}')
    say('settled')
  `
  for (let n = 1; n <= claims; n += 1) {
    const id = `c${n}`
    for (let kills = 0; kills < 4; kills += 1) {
      const pair = [start(script(id)), start(script(id))]
      // The first to reach a chosen line of its work dies there. Then the other dies, too.
      for (const child of pair) {
        for (let line = 1 + chance(6); line > 0; line -= 1) await child.next().catch(() => undefined)
        await kill(child)
      }
    }
    const store = fileStore({ dir })
    const last = durable(claimMachine, {
      store,
      once: ['pay'],
      actors: {
        pay: fromPromise<string, { amount: number }>(async ({ self }) => {
          appendFileSync(bank, `${idempotencyKey(self)}\n`)
          return 'p1'
        }),
        askBank: fromPromise<string | null, { claim: string }>(async () =>
          listPayments(id).length > 0 ? 'p1' : null,
        ),
      },
    })
    await last.start(id, { input: { amount: 900 } })
    const { status } = await last.settled(id)
    if (status === 'active') {
      for (const text of ['one', 'two']) await last.send(id, { type: 'NOTE', text }, { key: text })
      await last.send(id, { type: 'APPROVE', by: 'ann' }, { key: 'approve' })
    }
    const { value, context } = await last.settled(id)
    expect([id, value, context.notes]).toEqual([id, 'paid', ['one', 'two']])
    expect(listPayments(id)).toHaveLength(1)
    store.close()
  }
})

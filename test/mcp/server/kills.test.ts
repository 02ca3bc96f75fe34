import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileStore } from '../../../src/stores/file/index.js'
import type { McpHandler } from '../../../src/mcp/server/index.js'
import { buildServing } from '../../stores/child.js'
import { readSessionAt } from '../../../src/core/sessions/replay-session.js'
import { blockOf, nameRecord } from '../page-block.js'
import { awaitTask, rpc, type RpcReply } from './support.js'
import { runsAll } from '../../support/extent.js'

interface Instance {
  process: ChildProcess
  port: number
}

/** Three processes behind a round robin. An unanswered request goes to the next process. */
class Crew {
  readonly #url: string
  readonly #folder: string
  readonly #instances: Instance[] = []
  #next = 0

  constructor(url: string, folder: string) {
    this.#url = url
    this.#folder = folder
  }

  async fill(): Promise<void> {
    while (this.#instances.length < 3) this.#instances.push(await this.#start())
  }

  readonly handler = Object.assign(
    async (request: Request): Promise<Response> => {
      const body = await request.text()
      for (;;) {
        const instance = this.#instances[this.#next++ % this.#instances.length]
        if (!instance) throw new Error('All processes are dead.')
        const { pathname } = new URL(request.url)
        try {
          const { headers } = request
          const response = await fetch(`http://127.0.0.1:${instance.port}${pathname}`, {
            method: 'POST',
            headers,
            body,
          })
          return new Response(await response.text(), { status: response.status })
        } catch {
          // It is dead or about to die, so the next process gets the request.
        }
      }
    },
    { drain: () => Promise.resolve() },
  ) satisfies McpHandler

  #forget(dead: Instance): void {
    const at = this.#instances.indexOf(dead)
    if (at >= 0) this.#instances.splice(at, 1)
  }

  async #start(): Promise<Instance> {
    const script = fileURLToPath(new URL('instance.mjs', import.meta.url))
    const child = spawn(process.execPath, [script, this.#url, this.#folder], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const instance: Instance = { process: child, port: 0 }
    child.once('exit', () => this.#forget(instance))
    const line = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (chunk) => resolve(String(chunk)))
      child.once('exit', () => reject(new Error('The instance has ended.')))
    })
    return Object.assign(instance, { port: Number(line) })
  }

  close(): void {
    for (const { process: child } of this.#instances.splice(0)) child.kill('SIGKILL')
  }
}

const built = buildServing()
const folder = mkdtempSync(join(tmpdir(), 'mcp-kills-'))
const crew = new Crew(built.url, folder)
const store = fileStore({ dir: join(folder, 'store') })

beforeAll(() => crew.fill())
afterAll(() => {
  crew.close()
  store.close()
  rmSync(folder, { recursive: true, force: true })
  built.remove()
})

const answered = 'Done: invoice 17: 5 EUR, paid 5 EUR.'
const payments = (session: string): number => {
  try {
    return readFileSync(join(folder, 'ledger'), 'utf8')
      .split('\n')
      .filter((line) => line === session).length
  } catch {
    return 0
  }
}

/** A person who has checked the bank account and does not repeat completed payments. */
function decide(session: string, request: unknown): object {
  const { message } = (request as { params: { message: string } }).params
  expect(message).toContain('pay({})')
  return { action: 'accept', content: { confirm: payments(session) === 0 } }
}

function decideAll(session: string, requests: unknown): Record<string, object> {
  return Object.fromEntries(
    Object.entries(requests as object).map(([key, request]) => [key, decide(session, request)]),
  )
}

const textOf = (result: unknown): string => (result as { content: { text: string }[] }).content[0]?.text ?? ''

/** A client with task support. It calls, polls the task, answers, and reads the result. */
async function playTask(session: string): Promise<string> {
  const { handler } = crew
  const call = { name: 'clerk', arguments: { message: 'Pay invoice 17.', session } }
  await rpc(handler, 'tools/call', call)
  for (;;) {
    const task = await awaitTask(handler, session, ['input_required', 'completed'])
    if (task.status === 'completed') return textOf(task['result'])
    const inputResponses = decideAll(session, task['inputRequests'])
    await rpc(handler, 'tasks/update', { taskId: session, inputResponses })
  }
}

/** A client without task support. It retries its call with the answer. */
async function playPlain(session: string): Promise<string> {
  const { handler } = crew
  const call = { name: 'clerk', arguments: { message: 'Pay invoice 17.', session } }
  const capabilities = { elicitation: { form: {} } }
  let reply: RpcReply = await rpc(handler, 'tools/call', call, { capabilities })
  while (reply.result?.['resultType'] === 'input_required') {
    const { inputRequests, requestState } = reply.result
    const inputResponses = decideAll(session, inputRequests)
    reply = await rpc(handler, 'tools/call', { ...call, inputResponses, requestState }, { capabilities })
  }
  return textOf(reply.result)
}

const kinds = { task: playTask, plain: playPlain }
type Kind = keyof typeof kinds
const plays = Object.entries(kinds) as [Kind, (session: string) => Promise<string>][]
const heads = { task: 0, plain: 0 }

test.each(plays)(
  'an uninterrupted run, by a %s',
  async (kind, play) => {
    expect(await play(`${kind}-0`)).toBe(answered)
    expect(payments(`${kind}-0`)).toBe(1)
    heads[kind] = store.get(`${kind}-0`)?.head ?? 0
    expect(heads[kind]).toBeGreaterThan(5)
  },
  60_000,
)

/** The record after which the process died, and the run's state in that record. */
async function describeDeath(session: string, seq: number): Promise<string> {
  const record = store.read(session).find((one) => one.seq === seq)
  const { run } = await readSessionAt(store, session, seq)
  return `${record ? nameRecord(record) : ''} | ${run?.context.state ?? 'no run'}`
}

const rows: string[] = []

test.each(plays)(
  'the process is killed at each record, and the client of a %s receives the same answer for one payment',
  async (kind, play) => {
    const about = kind === 'task' ? 'with tasks' : 'without tasks'
    for (let records = 1; records <= heads[kind]; records += runsAll ? 1 : 6) {
      const session = `${kind}-${records}`
      await crew.fill()
      const order = join(folder, 'kill')
      writeFileSync(order, `${session} ${records}`)
      const answer = await play(session)
      expect([records, existsSync(order), payments(session), answer]).toEqual([records, false, 1, answered])
      const death = await describeDeath(session, records)
      rows.push(`| ${about} | ${records}: ${death} | ${payments(session)} | ${answer} |`)
    }
  },
  300_000,
)

test('docs/mcp.md contains the table of these kills: STATEWRIGHT_MCP_PAGE=write STATEWRIGHT_TESTS=all writes it', () => {
  const head = '| Client | Killed after record | State of the run | Payments | Response |'
  const played = [head, '| --- | --- | --- | --- | --- |', ...rows]
  expect(blockOf('serverKills', played)).toEqual(runsAll ? played : expect.arrayContaining(played))
})

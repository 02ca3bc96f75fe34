import {
  type AgentOptions,
  createAgent,
  defineShield,
  defineTool,
  memoryStore,
  type ModelProvider,
  runSession,
  type SessionStore,
  type ToolExecution,
} from '../../src/index.js'
import { clearRecords } from '../../src/core/sessions/clear-records.js'
import { call, plainAnswer, settled } from '../support/manual-model.js'

const until = async (isReached: () => boolean): Promise<void> => {
  while (!isReached()) await settled()
}

/** Calls `export`, then reports the result. */
const model: ModelProvider = {
  provider: 'scripted',
  model: 'scripted-1',
  request: ({ messages }) => {
    const last = messages.at(-1)
    return Promise.resolve(
      last?.role === 'tool'
        ? { ...plainAnswer, text: last.content }
        : { ...plainAnswer, toolCalls: [call('a', 'export')], finishReason: 'tool_calls' },
    )
  },
}

/** Jobs at an external service. Calls start them and poll until they are done. */
class Service {
  readonly begun: string[] = []
  readonly requests: unknown[] = []
  readonly ended: string[] = []
  isDone = false

  /** The tool as each process defines it. */
  tool(keepsHandle = true) {
    return defineTool({
      name: 'export',
      description: 'Exports the books.',
      input: { type: 'object' },
      keepsHandle,
      execute: async (_, { signal, handle, keepHandle, idempotencyKey }: ToolExecution) => {
        signal.addEventListener('abort', () => this.ended.push((signal.reason as Error).name))
        if (handle === undefined) {
          this.begun.push(idempotencyKey)
          await keepHandle?.({ job: this.begun.length })
        }
        this.requests.push(handle ?? 'its own')
        await until(() => this.isDone || signal.aborted)
        return `Job ${this.begun.length} is done.`
      },
    })
  }
}

function agentOn(store: SessionStore, service: Service, options: Partial<AgentOptions> = {}) {
  return createAgent({ model, store, tools: [service.tool()], ...options })
}

describe('a call that has saved a handle', () => {
  test('continues from it in another process, and starts nothing again', async () => {
    const store = memoryStore()
    const service = new Service()
    const dying = agentOn(store, service)
    const abandoned = dying.run('Export.', { session: 's' })
    await until(() => service.requests.length === 1)
    const left = await dying.fork('s')
    const resumed = agentOn(store, service).resume(left)
    await until(() => service.requests.length === 2)
    service.isDone = true
    expect(await (await resumed).result).toMatchObject({ state: 'COMPLETED', output: 'Job 1 is done.' })
    expect(service).toMatchObject({ begun: [expect.any(String)], requests: ['its own', { job: 1 }] })
    await abandoned.result
  })

  test('is abandoned immediately by a stopping process, and its job continues', async () => {
    const store = memoryStore()
    const service = new Service()
    const stop = new AbortController()
    const driving = runSession(agentOn(store, service), { session: 's', input: 'Go.', signal: stop.signal })
    await until(() => service.requests.length === 1)
    stop.abort()
    expect(await driving).toMatchObject({ stopped: true, state: 'WAITING_FOR_TOOL' })
    expect(service.ended).toEqual(['LeftError'])
    service.isDone = true
    expect(await runSession(agentOn(store, service), { session: 's' })).toMatchObject({
      output: 'Job 1 is done.',
    })
    expect(service.begun).toHaveLength(1)
  })

  test('aborts like any other if its run is cancelled', async () => {
    const service = new Service()
    const run = agentOn(memoryStore(), service).run('Export.')
    await until(() => service.requests.length === 1)
    run.cancel()
    expect((await run.result).state).toBe('CANCELLED')
    expect(service.ended).toEqual(['AbortError'])
  })

  test('has it in the log before it continues', async () => {
    const store = memoryStore()
    const service = new Service()
    let release = (): void => undefined
    const slow: SessionStore = {
      ...store,
      append: async (lease, records, ...more) => {
        if (records.some(({ data }) => JSON.stringify(data).includes('HANDLE_SAVED')))
          await new Promise<void>((resolve) => {
            release = resolve
          })
        return store.append(lease, records, ...more)
      },
    }
    const run = agentOn(slow, service).run('Export.', { session: 's' })
    await until(() => service.begun.length === 1)
    for (let turn = 0; turn < 5; turn += 1) await settled()
    expect(service.requests).toEqual([])
    release()
    await until(() => service.requests.length === 1)
    service.isDone = true
    expect((await run.result).output).toBe('Job 1 is done.')
  })

  test.each([
    ['started with no such tool', false, true],
    ['continues with no such tool', true, false],
  ])('is not repeated when the program %s', async (_, before, after) => {
    const store = memoryStore()
    const service = new Service()
    const dying = agentOn(store, service, { tools: [service.tool(before)] })
    const abandoned = dying.run('Export.', { session: 's' })
    await until(() => service.requests.length === 1)
    const other = agentOn(store, service, { tools: [service.tool(after)] })
    const result = await (await other.resume(await dying.fork('s'))).result
    expect(result.output).toMatch(/Its outcome is unknown/)
    expect(service.begun).toHaveLength(1)
    service.isDone = true
    await abandoned.result
  })

  test('shows it to no reader of the log if shields screen results', async () => {
    const store = memoryStore()
    const service = new Service()
    const shield = defineShield({ name: 'calm', check: () => ({ action: 'allow' }) })
    const agent = agentOn(store, service, { shields: { toolOutput: [shield] } })
    const run = agent.run('Export.', { session: 's' })
    await until(() => service.requests.length === 1)
    const { records } = clearRecords(store.read('s'), 's')
    expect(JSON.stringify(records)).toContain('HANDLE_SAVED')
    expect(JSON.stringify(records)).not.toContain('"job"')
    service.isDone = true
    expect((await run.result).output).toBe('Job 1 is done.')
  })
})

test('a tool without keepsHandle receives no handle function', async () => {
  const seen: ToolExecution[] = []
  const tool = defineTool({
    name: 'export',
    description: 'Exports.',
    input: { type: 'object' },
    execute: (_, execution) => seen.push(execution),
  })
  await createAgent({ model, tools: [tool] }).run('Export.').result
  expect(seen[0]).not.toHaveProperty('keepHandle')
})

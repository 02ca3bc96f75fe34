import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { z } from 'zod'
import {
  type Agent,
  type AgentEvent,
  createAgent,
  defineShield,
  defineTool,
  memoryStore,
  type AgentOptions,
} from '../../src/index.js'
import { skills } from '../../src/skills/index.js'
import { call, ManualModel, settled } from '../support/manual-model.js'
import { textOf } from '../support/play.js'
import { findUnlawful } from '../support/find-unlawful.js'
import { SessionLibrary } from '../../src/studio/session-library.js'
import { folderOf, removeFolders, skillFile } from './support.js'
import { sampled } from '../support/extent.js'

afterAll(removeFolders)

const body = 'Read first.\r\n\n\tThen *judge*: ""`${x}` – 好.\n   \n'

function stage(options: Partial<AgentOptions> = {}, dir = createDir()) {
  const model = new ManualModel()
  const ran: string[] = []
  const tool = (name: string, needsApproval = false) =>
    defineTool({
      name,
      description: `Does ${name}.`,
      input: z.looseObject({}),
      needsApproval,
      execute: () => {
        ran.push(name)
        return `${name} is done. ${'x'.repeat(1_500)}`
      },
    })
  const create = (): Agent =>
    createAgent({
      model,
      instructions: 'You are careful.',
      prices: null,
      tools: [tool('read'), tool('write'), tool('deploy', true)],
      skills: skills({ dirs: [dir] }),
      ...options,
    } as AgentOptions) as Agent
  return { model, ran, agent: create(), made: create, dir }
}

const createDir = (): string =>
  folderOf({
    'review/SKILL.md': skillFile('review', body, 'allowed-tools: read\n'),
    'review/references/forms.md': 'The forms.',
    'open/SKILL.md': skillFile('open', 'Anything goes.'),
  })

const answer = async (model: ManualModel, ...calls: ReturnType<typeof call>[]): Promise<void> => {
  model.pending?.answer(calls.length === 0 ? { text: 'Done.' } : { toolCalls: calls })
  await settled()
  await settled()
}
const lastResult = (model: ManualModel): string => textOf(model.pending?.request.messages.at(-1))

test('the model reads the index, loads a skill, and reads its files', async () => {
  const { model, agent } = stage()
  const run = agent.run('Review it.')
  await settled()
  const { instructions, tools } = model.pending?.request ?? {}
  expect(instructions).toMatch(/^You are careful\.\n\n.*load_skill/s)
  expect(instructions).toContain('- open: How to do open.\n- review: How to do review.')
  expect(instructions).not.toContain('Then *judge*')
  expect(tools?.map(({ name }) => name)).toEqual([
    'read',
    'write',
    'deploy',
    'load_skill',
    'read_skill_file',
    'unload_skill',
  ])
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  expect(lastResult(model).startsWith(body)).toBe(true)
  expect(lastResult(model)).toContain('only read may be called')
  await answer(model, call('b', 'read_skill_file', { skill: 'review', path: 'references/forms.md' }))
  expect(lastResult(model)).toBe('The forms.')
  await answer(model, call('c', 'load_skill', { name: 'revue' }))
  expect(lastResult(model)).toContain("There is no skill 'revue'. The skills are: review, open.")
  await answer(model)
  expect((await run.result).state).toBe('COMPLETED')
})

test('a loaded skill refuses other tools before they run, including those that people approve, until it is unloaded', async () => {
  const { model, agent, ran } = stage()
  const run = agent.run('Review it.')
  await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  await answer(model, call('b', 'write'), call('c', 'read'), call('d', 'deploy'))
  expect(run.state).toBe('RUNNING')
  expect(ran).toEqual(['read'])
  const results = model.pending?.request.messages.slice(-3).map((message) => textOf(message))
  expect(results?.[0]).toContain("the skill 'review' is loaded, and allows only read")
  expect(results?.[2]).toContain("the skill 'review' is loaded")
  await answer(model, call('e', 'unload_skill', { name: 'review' }))
  await answer(model, call('f', 'write'))
  expect(ran).toEqual(['read', 'write'])
  await answer(model)
  await run.result
})

test('two skills together allow only the tools that both allow', async () => {
  const dir = folderOf({
    'one/SKILL.md': skillFile('one', 'One.', 'allowed-tools: [read, write]\n'),
    'two/SKILL.md': skillFile('two', 'Two.', 'allowed-tools: "write, deploy"\n'),
    'none/SKILL.md': skillFile('none', 'None.', 'allowed-tools: []\n'),
  })
  const { model, agent, ran } = stage({}, dir)
  agent.run('Go.')
  await settled()
  await answer(model, call('a', 'load_skill', { name: 'one' }), call('b', 'load_skill', { name: 'two' }))
  await answer(model, call('c', 'read'), call('d', 'write'))
  expect(ran).toEqual(['write'])
  await answer(model, call('e', 'load_skill', { name: 'none' }))
  await answer(model, call('f', 'write'))
  expect(ran).toEqual(['write'])
  expect(lastResult(model)).toContain("the skill 'none' is loaded, and allows no tools")
})

test('a skill stays loaded in the next run and after a resume in another process, and a change of it is reported', async () => {
  const store = memoryStore()
  const { model, agent, made: create, ran, dir } = stage({ store })
  const first = agent.run('Review it.', { session: 's' })
  await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  await answer(model)
  await first.result

  writeFileSync(join(dir, 'review/SKILL.md'), skillFile('review', 'Another body.', 'allowed-tools: write\n'))
  const events: AgentEvent[] = []
  const later = create()
  const run = later.run('And now?', { session: 's' })
  run.events$.subscribe((event) => events.push(event))
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  expect(events.filter(({ type }) => type === 'warning')).toMatchObject([{ code: 'skill_changed' }])
  await answer(model, call('b', 'write'))
  expect(ran).toEqual([])
  await answer(model, call('c', 'deploy'))
  expect(ran).toEqual([])
  run.cancel()
  await run.result
  expect(await findUnlawful(store)).toEqual([])
})

test('a branch from before a skill was loaded does not have it', async () => {
  const store = memoryStore()
  const { model, agent, ran } = stage({ store })
  const first = agent.run('Hello.', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model)
  await first.result
  const second = agent.run('Review it.', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  await answer(model)
  await second.result
  const other = agent.branch('s', { from: 'm1', edit: 'Write it.' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('b', 'write'))
  expect(ran).toEqual(['write'])
  await answer(model)
  await other.result
  expect(await findUnlawful(store)).toEqual([])
})

test('a branch from before a skill was unloaded has it, and calls that it refuses count for no cap', async () => {
  const store = memoryStore()
  const { model, agent, ran } = stage({ store, limits: { maxToolCalls: 2 } })
  const say = async (...answers: ReturnType<typeof call>[][]): Promise<void> => {
    for (const calls of [...answers, []]) {
      for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
      await answer(model, ...calls)
    }
  }
  const first = agent.run('Review it.', { session: 's' })
  await say([call('a', 'load_skill', { name: 'review' })])
  await first.result
  const { messages } = await agent.replay('s')
  const second = agent.run('Write it.', { session: 's' })
  await say([call('b', 'unload_skill', { name: 'review' })], [call('c', 'write')])
  await second.result
  expect(ran).toEqual(['write'])
  const other = agent.branch('s', { from: `m${messages.length + 1}`, edit: 'Write it, and read it.' })
  await say([call('d', 'write'), call('e', 'write', { n: 1 })], [call('f', 'read'), call('g', 'write')])
  await other.result
  expect(ran).toEqual(['write', 'read'])
  expect(await findUnlawful(store)).toEqual([])
})

test.each([
  ['blocks', 'block' as const, false],
  ['passes it', 'allow' as const, true],
])('a result shield that %s decides whether the skill is loaded', async (_, action, isLoaded) => {
  const store = memoryStore()
  const shield = defineShield({ name: 'words', check: () => ({ action, message: 'No.' }) })
  const { model, agent, ran } = stage({ store, shields: { toolOutput: [shield] } })
  const run = agent.run('Review it.')
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('b', 'write'))
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  expect(ran).toEqual(isLoaded ? [] : ['write'])
  await answer(model)
  await run.result
  expect(await findUnlawful(store)).toEqual([])
})

/** Counts letters. The count is exact and independent of the package. */
const letters = { count: (text: string) => text.length }

test.each(['sliding_window', 'compact', 'summarize'] as const)(
  'after 100 fits by %s the instructions of loaded skills are complete',
  async (strategy) => {
    const { model, agent } = stage({
      tokenizer: letters,
      limits: { maxSteps: 2_000 },
      guardrails: { progress: null },
      context: { window: 6_000, strategy },
    })
    const run = agent.run('Review it.')
    const fits: AgentEvent[] = []
    run.events$.subscribe((event) => {
      if (event.type === 'context_fitted') fits.push(event)
    })
    for (let i = 0; i < 20 && !model.pending; i += 1) await settled()
    const load = [call('a', 'load_skill', { name: 'review' }), call('b', 'load_skill', { name: 'open' })]
    await answer(model, ...load)
    let checked = 0
    let seen = 0
    for (let i = 0; fits.length < 100 && i < 2_000; i += 1) {
      for (let turn = 0; turn < 20 && !model.pending; turn += 1) await settled()
      const { request } = model.pending ?? {}
      if (!request) throw new Error(`Nothing is asked: ${run.state}.`)
      if (request.tools.length === 0) {
        model.pending?.answer({ text: 'Notes.' })
        await settled()
        continue
      }
      const text = request.messages.map((message) => textOf(message)).join('\n')
      if (i > 0) {
        expect(text.split(body)).toHaveLength(2)
        expect(text.split('Anything goes.')).toHaveLength(2)
        if (fits.length > seen) checked += 1
        seen = fits.length
      }
      await answer(model, call(`c${i}`, 'read'))
    }
    expect(fits.length).toBe(100)
    expect(checked).toBeGreaterThanOrEqual(99)
    run.cancel()
    await run.result
  },
  120_000,
)

test('no tool runs that a loaded skill does not allow, whatever the model calls', async () => {
  const dir = folderOf({
    'one/SKILL.md': skillFile('one', 'One.', 'allowed-tools: read\n'),
    'two/SKILL.md': skillFile('two', 'Two.', 'allowed-tools: read write\n'),
  })
  const allowed: Record<string, string[]> = { one: ['read'], two: ['read', 'write'] }
  const step = fc.constantFrom('load one', 'load two', 'unload one', 'unload two', 'read', 'write')
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { maxLength: 8 }),
      async (steps) => {
        const { model, agent, ran } = stage({ guardrails: { progress: null } }, dir)
        const run = agent.run('Go.')
        await settled()
        const loaded = new Set<string>()
        for (const [at, names] of steps.entries()) {
          const before = ran.length
          const may = ['read', 'write'].filter((name) =>
            [...loaded].every((skill) => allowed[skill]?.includes(name)),
          )
          await answer(
            model,
            ...names.map((name, i) => {
              const [action, skill] = name.split(' ')
              return skill
                ? call(`c${at}.${i}`, `${action}_skill`, { name: skill })
                : call(`c${at}.${i}`, name, { at, i })
            }),
          )
          expect(ran.slice(before).sort()).toEqual(names.filter((name) => may.includes(name)).sort())
          for (const name of names) {
            const [action, skill = ''] = name.split(' ')
            if (action === 'load') loaded.add(skill)
            if (action === 'unload') loaded.delete(skill)
          }
        }
        run.cancel()
        await run.result
      },
    ),
    { numRuns: sampled(25) },
  )
}, 60_000)

test('a sub-agent works with its own tools, whatever the skills of its caller allow', async () => {
  const below = new ManualModel()
  const ran: string[] = []
  const write = defineTool({
    name: 'write',
    description: 'Writes.',
    input: z.looseObject({}),
    execute: () => {
      ran.push('write')
      return 'Written.'
    },
  })
  const child = createAgent({ model: below, tools: [write], prices: null })
  const dir = folderOf({ 'lead/SKILL.md': skillFile('lead', 'Delegate.', 'allowed-tools: research\n') })
  const tools = [child.asTool({ name: 'research', description: 'Looks.' }), write]
  const { model, agent } = stage({ tools }, dir)
  const run = agent.run('Go.')
  await settled()
  await answer(model, call('a', 'load_skill', { name: 'lead' }))
  await answer(model, call('b', 'research', { task: 'Write it.' }), call('c', 'write'))
  for (let i = 0; i < 10 && !below.pending; i += 1) await settled()
  expect(ran).toEqual([])
  await answer(below, call('d', 'write'))
  expect(ran).toEqual(['write'])
  await answer(below)
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model)
  expect((await run.result).state).toBe('COMPLETED')
})

test('a loaded skill that the agent no longer has is reported, still restricts the tools, and can be unloaded', async () => {
  const store = memoryStore()
  const { model, agent } = stage({ store })
  const first = agent.run('Review it.', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  await answer(model)
  await first.result
  const read = defineTool({
    name: 'write',
    description: 'Writes.',
    input: z.looseObject({}),
    execute: () => '',
  })
  const without = createAgent({ model, prices: null, store, tools: [read] })
  const warnings: string[] = []
  const run = without.run('And now?', { session: 's' })
  run.events$.subscribe((event) => {
    if (event.type === 'warning') warnings.push(event.code)
  })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  expect(warnings).toEqual(['skill_missing'])
  await answer(model, call('b', 'write'))
  expect(lastResult(model)).toBe("Not executed: the skill 'review' is loaded, and allows only read.")
  await answer(model)
  await run.result
  const other = folderOf({ 'open/SKILL.md': skillFile('open', 'Anything goes.') })
  const later = stage({ store, model }, other)
  const last = later.agent.run('And now?', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('c', 'write'))
  expect(lastResult(model)).toContain('unload_skill')
  await answer(model, call('d', 'unload_skill', { name: 'review' }))
  await answer(model, call('e', 'write'))
  expect(later.ran).toEqual(['write'])
  await answer(model)
  await last.result
  expect(await findUnlawful(store)).toEqual([])
})

test('a skill that is loaded again is read again', async () => {
  const { model, agent, dir } = stage()
  const run = agent.run('Review it.')
  await settled()
  await answer(model, call('a', 'load_skill', { name: 'open' }))
  expect(lastResult(model)).toBe('Anything goes.')
  writeFileSync(join(dir, 'open/SKILL.md'), skillFile('open', 'Less goes.'))
  await answer(model, call('b', 'load_skill', { name: 'open' }))
  expect(lastResult(model)).toBe('Less goes.')
  writeFileSync(join(dir, 'open/SKILL.md'), skillFile('renamed', 'Nothing goes.'))
  await answer(model, call('c', 'load_skill', { name: 'open' }))
  expect(lastResult(model)).toContain("is now named 'renamed'")
  run.cancel()
  await run.result
})

test('loading a skill is a record of the log, and a row of the studio', async () => {
  const store = memoryStore()
  const { model, agent } = stage({ store })
  const run = agent.run('Review it.', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('a', 'load_skill', { name: 'review' }))
  await answer(model)
  await run.result
  const fold = await new SessionLibrary(store, () => false).readFold('s')
  expect(fold.rows.map(({ label }) => label)).toContain('skill review loaded')
  const { messages } = await agent.replay('s')
  expect(messages.find(({ role }) => role === 'tool')?.data).toEqual({
    skill: { action: 'load', name: 'review', hash: expect.any(String) as string, allowedTools: ['read'] },
  })
})

test('a run that is cancelled while a skill is read ends without the skill', async () => {
  const all = skills({
    list: [{ name: 'slow', description: 'Takes its time.', allowedTools: [] }],
    load: () => new Promise<string>(() => undefined),
  })
  const store = memoryStore()
  const { model, agent } = stage({ skills: all, store })
  const run = agent.run('Go.', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('a', 'load_skill', { name: 'slow' }))
  run.cancel()
  expect((await run.result).state).toBe('CANCELLED')
  const next = agent.run('And now?', { session: 's' })
  for (let i = 0; i < 10 && !model.pending; i += 1) await settled()
  await answer(model, call('b', 'read'))
  expect(lastResult(model)).toContain('read is done')
  await answer(model)
  await next.result
  expect(await findUnlawful(store)).toEqual([])
})

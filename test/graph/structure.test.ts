import { type AnyStateMachine, type AnyStateNode, initialTransition, transition } from 'xstate'
import { getStateNodes } from '@xstate/graph'
import { agentMachine } from '../../machines/agent.machine.js'
import type { AgentInput } from '../../machines/agent/context.js'
import { agentSpace } from '../../src/testing/index.js'

const root: AnyStateNode = agentMachine.root
const nodes: AnyStateNode[] = [root, ...(getStateNodes(agentMachine) as AnyStateNode[])]
const name = (node: AnyStateNode): string => node.path.join('.') || '(root)'

function namesOf(wrong: (node: AnyStateNode) => boolean): string[] {
  return nodes.filter(wrong).map(name)
}

test('every state has a description', () => {
  expect(namesOf(({ description }) => description === undefined || description === '')).toEqual([])
})

test('a state with its own id is also found by its path, as stored snapshots and editors name it', () => {
  for (const node of nodes)
    expect(agentMachine.getStateNodeById(['agent', ...node.path].join('.'))).toBe(node)
})

test('a machine without an input says what is missing', () => {
  const [{ status, error }] = initialTransition(agentMachine as AnyStateMachine)
  expect(status).toBe('error')
  expect(error).toMatchObject({ message: expect.stringContaining('createInput()') })
})

test('no state has both always and invoke, because XState would start and discard the actor', () => {
  expect(namesOf(({ always, invoke }) => (always?.length ?? 0) > 0 && invoke.length > 0)).toEqual([])
})

test('every invoke has onDone', () => {
  expect(
    namesOf(({ invoke, transitions }) =>
      invoke.some(({ id }) => !transitions.has(`xstate.done.actor.${id}`)),
    ),
  ).toEqual([])
})

test('every failure is handled by the root, without a guard, if no inner state handles it', () => {
  const every = 'xstate.error.actor.*'
  expect(root.transitions.get(every)).toMatchObject([{ guard: undefined, target: [{ key: 'ERROR' }] }])
  const start = initialTransition(agentMachine, agentSpace().inputs.plain as AgentInput)[0]
  for (const id of nodes
    .flatMap(({ invoke }) => invoke.map((one) => one.id))
    .filter((id) => id !== 'model')) {
    const failed = { type: `xstate.error.actor.${id}`, error: { code: 'x', message: 'It broke.' } }
    const [next] = transition(agentMachine, start, failed as never)
    expect(next).toMatchObject({ value: 'ERROR', context: { reason: 'internal', error: { code: 'x' } } })
  }
})

test('CANCEL is handled at the root, first and without a guard, and nowhere else', () => {
  expect(namesOf(({ transitions }) => transitions.has('CANCEL'))).toEqual(['(root)'])
  expect(root.transitions.get('CANCEL')).toMatchObject([{ guard: undefined, target: [{ key: 'CANCELLED' }] }])
})

test('no state handles events by a wildcard, except failures at the root', () => {
  const wild = nodes.flatMap((node) =>
    [...node.transitions.keys()]
      .filter((event) => event.includes('*'))
      .map((event) => `${name(node)}: ${event}`),
  )
  expect(wild).toEqual(['(root): xstate.error.actor.*'])
})

test('no state has more than ten children, or more than two levels', () => {
  expect(namesOf(({ states, parent }) => parent !== undefined && Object.keys(states).length > 10)).toEqual([])
  expect(namesOf(({ path }) => path.length > 3)).toEqual([])
})

test('the final states are the documented ones, and nothing leaves them', () => {
  const finals = nodes.filter(({ type }) => type === 'final')
  expect(finals.map(name)).toEqual([
    'COMPLETED',
    'CANCELLED',
    'TIMED_OUT',
    'MAX_STEPS',
    'BUDGET_EXCEEDED',
    'BLOCKED',
    'ERROR',
  ])
  expect(finals.flatMap(({ transitions }) => [...transitions.keys()])).toEqual([])
})

/** The config as JSON. Editors open it, so every part except context, output and actor inputs has a name. */
test('guards, actions and actors are named, not inline', () => {
  const inline: string[] = []
  look(agentMachine.config, '')
  expect(inline).toEqual([])

  function look(value: unknown, path: string): void {
    if (typeof value === 'function') {
      if (!/^\.(context|output)$|\.invoke\.input$/.test(path)) inline.push(path)
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, part] of Object.entries(value)) look(part, `${path}.${key}`)
    }
  }
})

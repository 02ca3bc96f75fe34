import { type AnyStateMachine, createMachine } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'

/** A machine with one fault. */
export interface Mutant {
  name: string
  machine: AnyStateMachine
}

type Plain = Record<string, unknown>
/** The key path of a part of the config. */
type Path = readonly (string | number)[]

/**
 * Every small fault of the chart's config, which is a removed branch, guard or action, a target swapped with the next branch's target, and
 * two branches in the wrong order.
 */
export function configMutants(): Mutant[] {
  const faults: { name: string; spoil: (config: Plain) => void }[] = []
  for (const { path, node } of nodesOf(agentMachine.config as Plain, [])) {
    const where = path.filter((key) => key !== 'states').join('.') || '(root)'
    for (const hook of ['entry', 'exit']) {
      const actions = listOf(node[hook])
      actions.forEach((action, i) => {
        faults.push({
          name: `${where}: ${hook} without ${nameOf(action)}`,
          spoil: (config) => put(config, [...path, hook], without(actions, i)),
        })
      })
    }
    for (const { at, label, branches } of handlersOf(node)) {
      const place = [...path, ...at]
      const set = (config: Plain, next: unknown[]): void => put(config, place, next)
      branches.forEach((branch, i) => {
        const name = `${where}: ${label}${branch.guard === undefined ? '' : ` [${nameOf(branch.guard)}]`}`
        const change = (patch: Plain): Plain[] =>
          branches.map((other, k) => (k === i ? { ...other, ...patch } : other))
        faults.push({ name: `${name} is missing`, spoil: (config) => set(config, without(branches, i)) })
        if (branch.guard !== undefined) {
          faults.push({
            name: `${name} without its guard`,
            spoil: (config) => set(config, change({ guard: undefined })),
          })
        }
        listOf(branch.actions).forEach((action, k, actions) => {
          faults.push({
            name: `${name} without ${nameOf(action)}`,
            spoil: (config) => set(config, change({ actions: without(actions, k) })),
          })
        })
        const next = branches[i + 1]
        if (next === undefined) return
        faults.push({
          name: `${name} after the next branch`,
          spoil: (config) => set(config, [...branches.slice(0, i), next, branch, ...branches.slice(i + 2)]),
        })
        if (next.target !== branch.target) {
          faults.push({
            name: `${name} with the target of the next branch, and the next with its`,
            spoil: (config) => {
              const swapped = change({ target: next.target })
              swapped[i + 1] = { ...next, target: branch.target }
              set(config, swapped)
            },
          })
        }
      })
    }
  }
  return faults.map(({ name, spoil }) => {
    const config = copy(agentMachine.config) as Plain
    spoil(config)
    // Without its guard, a transition can repeat for ever.
    config.options = { maxIterations: 1_000 }
    return { name, machine: createMachine(config as never, agentMachine.implementations as never) }
  })
}

function nodesOf(node: Plain, path: Path): { path: Path; node: Plain }[] {
  const children = Object.entries((node.states ?? {}) as Record<string, Plain>)
  return [{ path, node }, ...children.flatMap(([key, child]) => nodesOf(child, [...path, 'states', key]))]
}

function handlersOf(node: Plain): { at: Path; label: string; branches: Plain[] }[] {
  const on = Object.entries((node.on ?? {}) as Plain).map(([event, branches]) => ({
    at: ['on', event],
    label: event,
    branches,
  }))
  const invoke = node.invoke as Plain | undefined
  const endings = (['onDone', 'onError'] as const).map((key) => ({
    at: ['invoke', key],
    label: key,
    branches: invoke?.[key],
  }))
  return [...on, { at: ['always'], label: 'always', branches: node.always }, ...endings]
    .filter(({ branches }) => branches !== undefined)
    .map(({ branches, ...handler }) => ({ ...handler, branches: listOf(branches) as Plain[] }))
}

function put(config: Plain, path: Path, value: unknown): void {
  const parent = path.slice(0, -1).reduce<Plain>((part, key) => part[key] as Plain, config)
  parent[path.at(-1) as string] = value
}

/** Functions stay the same. */
function copy(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(copy)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, copy(part)]))
}

function listOf(value: unknown): unknown[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value]
}

function without<T>(list: readonly T[], index: number): T[] {
  return list.filter((_, i) => i !== index)
}

function nameOf(named: unknown): string {
  if (typeof named === 'string') return named
  const { type, params } = named as { type: string; params?: object }
  return params ? `${type}(${Object.values(params).join()})` : type
}

import type { AnyStateMachine, AnyStateNode } from 'xstate'
import { agentMachine } from '../../machines/agent.machine.js'
import { listStateNodes, getStateName } from '../../src/core/chart/state-labels.js'
import type { MachinePath } from '../../src/testing/index.js'

const kinds = ['guards', 'actions', 'actors'] as const
const soundText = new Map(listStateNodes(agentMachine).map((node) => [getStateName(node), ownText(node)]))

/** The paths, ordered so that transitions from changed states come first. The first paths catch most mutants. */
export function nearestFirst(machine: AnyStateMachine, paths: readonly MachinePath[]): MachinePath[] {
  const spoilt = findSpoiltStates(machine)
  const ids = (path: MachinePath): string[] => path.steps.flatMap(({ transitions }) => transitions)
  const distance = (path: MachinePath): number => {
    if (ids(path).some((id) => spoilt.some((state) => id.startsWith(`${state}: `)))) return 0
    return ids(path).some((id) => spoilt.some((state) => id.endsWith(` → ${state}`))) ? 1 : 2
  }
  const ranked = paths.map((path) => ({ path, rank: distance(path) }))
  return ranked.sort((one, other) => one.rank - other.rank).map(({ path }) => path)
}

/** The states whose transitions, actions or guards differ from the original machine. */
function findSpoiltStates(machine: AnyStateMachine): string[] {
  const sound = agentMachine.implementations as AnyStateMachine['implementations']
  const others = kinds.flatMap((kind) => {
    const implementations = machine.implementations[kind] as Record<string, unknown>
    return Object.keys(implementations).filter((name) => implementations[name] !== sound[kind][name])
  })
  return listStateNodes(machine)
    .filter((node) => {
      const text = ownText(node)
      return text !== soundText.get(getStateName(node)) || others.some((name) => text.includes(`"${name}"`))
    })
    .map(getStateName)
}

function ownText({ config }: AnyStateNode): string {
  return JSON.stringify({ ...config, states: undefined })
}

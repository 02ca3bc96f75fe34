import type { Plan } from './plan.js'
import { play } from './play.js'

/**
 * The text of a broken promise without the names and numbers of one story. It identifies the kind of promise.
 */
export function toKind(broken: string): string {
  return broken.replaceAll(/[sp]?\d[\d.:]*/g, '#').slice(0, 40)
}

/**
 * The smallest plan that still breaks the same promise, with fewer faults, people and processes, and without
 * irrelevant parts.
 */
export async function shrink(plan: Plan, mostTries = 400): Promise<Plan> {
  const [first] = (await play(plan)).broken
  if (first === undefined) return plan
  const kind = toKind(first)
  let tries = 0
  const fails = async (candidate: Plan): Promise<boolean> => {
    if (tries >= mostTries) return false
    tries += 1
    const [broken] = (await play(candidate)).broken
    return broken !== undefined && toKind(broken) === kind
  }
  let smallest = plan
  for (let before = ''; before !== JSON.stringify(smallest); ) {
    before = JSON.stringify(smallest)
    for (const simpler of listSimpler(smallest)) {
      const candidate = simpler(smallest)
      if (JSON.stringify(candidate) !== JSON.stringify(smallest) && (await fails(candidate)))
        smallest = candidate
    }
  }
  return smallest
}

type Simpler = (plan: Plan) => Plan

const isSame = (a: object, b: object): boolean => JSON.stringify(a) === JSON.stringify(b)

function listSimpler(plan: Plan): Simpler[] {
  const withoutLast = (key: 'faults' | 'sayings'): Simpler[] => [
    (now) => ({ ...now, [key]: [] }),
    // From last to first, so that removals do not shift earlier indexes.
    ...plan[key].map((_, i): Simpler => {
      const place = plan[key].length - 1 - i
      return (now) => ({ ...now, [key]: (now[key] as unknown[]).filter((__, at) => at !== place) })
    }),
  ]
  return [
    ...withoutLast('faults'),
    ...withoutLast('sayings'),
    ({ clients: _clients, ...now }) => now,
    ...(plan.clients?.messages ?? []).map(
      (one): Simpler =>
        (now) => ({
          ...now,
          ...(now.clients && {
            clients: {
              ...now.clients,
              messages: now.clients.messages.filter((each) => !isSame(each, one)),
            },
          }),
        }),
    ),
    ({ grants: _grants, ...now }) => now,
    ...(plan.grants?.given ?? []).map(
      (one): Simpler =>
        ({ grants, ...now }) =>
          grants
            ? { ...now, grants: { ...grants, given: grants.given.filter((each) => !isSame(each, one)) } }
            : now,
    ),
    (now) => ({ ...now, sessions: 1 }),
    ...[1, 2, 3].map(
      (processes): Simpler =>
        (now) => ({ ...now, processes: Math.min(now.processes, processes) }),
    ),
    (now) => ({ ...now, skews: [] }),
    (now) => ({ ...now, store: { ...now.store, slowest: 20 } }),
    (now) => ({ ...now, store: { ...now.store, sync: true } }),
    (now) => ({ ...now, manner: { ...now.manner, rejects: 0, edits: 0, twice: 0, loose: 0 } }),
    (now) => ({ ...now, agent: { ...now.agent, research: false } }),
    (now) => ({ ...now, agent: { ...now.agent, naps: false } }),
    (now) => ({
      ...now,
      agent: { ...now.agent, stream: false, tokenBudget: 0, timeoutMs: 0, maxRetryWaitMs: null },
    }),
  ]
}

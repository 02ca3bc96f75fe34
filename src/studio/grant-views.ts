import type { AgentContext } from '../../machines/agent/context.js'
import { type Grant, isOver } from '../../machines/agent/grant.js'
import { changeGrants } from '../../machines/agent/grants.js'
import type { ControlEvent } from '../../machines/agent/machine-events.js'
import type { GrantView } from './protocol.js'
import type { SessionStep } from './session-step.js'
import { type GrantNote, toShownText } from './shown-values.js'

/** Limited, because every moment of a session contains the grants. */
const mostViews = 200

const getGrants = ({ session: { run, state } }: SessionStep['after']): readonly Grant[] =>
  (run?.context ?? state).grants ?? []

export function recordGrants(
  notes: Map<string, GrantNote>,
  { record: { seq, at }, entry, before, after }: SessionStep,
): void {
  const [former, present] = [getGrants(before), getGrants(after)]
  if (former === present) return
  const event = entry.type === 'event' ? entry.event : undefined
  const given = event?.type === 'GRANT' || event?.type === 'APPROVE' ? event.grant : undefined
  for (const { id } of present)
    if (!notes.has(id)) notes.set(id, { seq, uses: given?.id === id ? given.uses : undefined })
  const ids = new Set(present.map(({ id }) => id))
  for (const grant of former) {
    const note = notes.get(grant.id)
    if (note && !ids.has(grant.id)) note.removed = { grant, seq, at }
  }
}

/** Active grants come first. `unread` are inbox messages that the next run reads before it starts a call. */
export function createGrantViews(
  { record, after }: SessionStep,
  notes: ReadonlyMap<string, GrantNote>,
  { now, unread = [] }: { now: number; unread?: readonly ControlEvent[] },
): GrantView[] {
  const present = getGrants(after)
  const context = after.session.run?.context
  const foreseen = context ? applyMessages(context, unread, now) : present
  const removed = [...notes.values()].flatMap(({ removed: one, seq }) =>
    one && seq <= record.seq && one.seq <= record.seq ? [one] : [],
  )
  const ids = new Set(foreseen.map(({ id }) => id))
  const revoked = present.filter(({ id }) => !ids.has(id))
  const all = [
    ...foreseen.map((grant) => ({ grant, ended: findEnd(grant, now) })),
    ...revoked.map((grant) => ({ grant, ended: findEnd(grant, now) ?? ('revoked' as const) })),
    ...removed.map(({ grant, at }) => ({ grant, ended: findEnd(grant, at) ?? ('revoked' as const) })),
  ]
  return all
    .toSorted((a, b) => Number(a.ended !== null) - Number(b.ended !== null))
    .slice(0, mostViews)
    .map(({ grant, ended }) => toView(grant, notes, ended))
}

function applyMessages(context: AgentContext, unread: readonly ControlEvent[], now: number) {
  return unread.reduce(
    (grants, event) => changeGrants({ ...context, grants }, { now, ...event }),
    context.grants ?? [],
  )
}

function findEnd(grant: Grant, now: number): GrantView['ended'] {
  return !isOver(grant, now) ? null : grant.uses === 0 ? 'used up' : 'expired'
}

function toView(
  { id, tool, speaker, when, arguments: exact = '{}', uses, until, givers }: Grant,
  notes: ReadonlyMap<string, GrantNote>,
  ended: GrantView['ended'],
): GrantView {
  return {
    id,
    tool,
    ...(speaker !== undefined && { speaker }),
    arguments: toShownText(when ? JSON.stringify(when) : exact),
    isExact: when === undefined,
    usesLeft: uses ?? null,
    uses: notes.get(id)?.uses ?? null,
    until: until ?? null,
    givers: givers.flatMap(({ by }) => (by ? [toShownText(by.id, 200)] : [])),
    ended,
  }
}

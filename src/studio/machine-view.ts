import { formatStateValue } from '../core/sessions/log/machine-record.js'
import type { SessionRow } from './protocol.js'
import type { SessionLibrary } from './session-library.js'
import { toShownText, toShownValue } from './shown-values.js'

export type MachineView = ReturnType<typeof createMachineView>

/** `children` are the sessions of the machine's agents, oldest first. */
export function createMachineView(
  session: SessionRow,
  { last: { machine, state }, records }: Awaited<ReturnType<SessionLibrary['readMachine']>>,
  children: SessionRow[],
) {
  return {
    session,
    children,
    machine: toShownText(machine, 200),
    status: state.status,
    context: toShownValue(state.context),
    ...(state.output !== undefined && { output: toShownValue(state.output) }),
    ...(state.error !== undefined && { error: toShownValue(state.error) }),
    actors: Object.values(state.actors).map(({ src }) => toShownText(src, 200)),
    waits: state.delays.map(({ event, at }) => ({ event: formatEventType(event.type), at })),
    records: records.map(({ seq, at, event, refused, state: { value } }) => {
      const { type, actorId: _actor, ...data } = event
      return {
        seq,
        at,
        event: formatEventType(type),
        data: Object.keys(data).length === 0 ? null : toShownValue(data),
        value: toShownText(formatStateValue(value), 500),
        refused: refused === undefined ? null : toShownText(`${refused.code}: ${refused.message}`, 2_000),
      }
    }),
  }
}

/** Formats `xstate.after.patience.claim.reviewing` as `after patience`. */
function formatEventType(type: string): string {
  const plain = type.replace(/^xstate\.after\.([^.]+)\..*$/, 'after $1').replace(/^xstate\./, '')
  return toShownText(plain, 200)
}

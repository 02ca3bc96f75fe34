import type { AgentContext } from '../../../machines/agent/context.js'
import type { SessionStore, SessionSummary } from './store/store.js'
import type { StoredTimer } from './store/timers.js'

const alarmPrefix = 'wake:'

/** Which session is to be woken, and the agent that began its run. */
export interface Alarm {
  session: string
  agent?: string
  version?: string
}

/**
 * Whether a rest ends by itself at a time that the store keeps. A sub-agent is woken by the run that called it, and an interactive
 * run by its own program.
 */
export function hasAlarm(
  { state, wakeAt, config }: AgentContext,
  { parent }: Pick<SessionSummary, 'parent'>,
): boolean {
  return state === 'PAUSED' && wakeAt !== null && parent === undefined && !config.interactive
}

/** Lets a session be woken: by any process that looks for what is due in its store, if it keeps timers. */
export function setAlarm(
  { timers }: SessionStore,
  session: string,
  at: number,
  begun: { name?: string; version?: string } | null,
): Promise<void> | void {
  const data: Omit<Alarm, 'session'> = {
    ...(begun?.name !== undefined && { agent: begun.name }),
    ...(begun?.version !== undefined && { version: begun.version }),
  }
  return timers?.set([{ id: `${alarmPrefix}${session}`, at, data: JSON.stringify(data) }])
}

/** Null for a timer that is none of ours. */
export function parseAlarm({ id, data }: StoredTimer): Alarm | null {
  if (!id.startsWith(alarmPrefix)) return null
  try {
    const { agent, version } = JSON.parse(data) as Partial<Alarm>
    const session = id.slice(alarmPrefix.length)
    const isText = (value: unknown): value is string => typeof value === 'string'
    return { session, ...(isText(agent) && { agent }), ...(isText(version) && { version }) }
  } catch {
    return null
  }
}

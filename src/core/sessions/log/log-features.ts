import type { ToolResult, ToolTraits } from '../../../../machines/agent/batch-calls.js'
import type { AgentContext, Features, SessionState } from '../../../../machines/agent/context.js'
import type { AgentMachineEvent } from '../../../../machines/agent/machine-events.js'
import type { ModelActorError } from '../../../../machines/agent/model-response.js'
import type { CallScreening } from '../../../../machines/agent/screening.js'
import type { RecordContent } from './record-content.js'

/** What a log may use. A reader that does not know a feature of a log would drop it, and continue from another state. */
const features = [
  'answer_shields',
  'call_caps',
  'deferred_tools',
  'elicitation',
  'ending_results',
  'fork_terms',
  'handles',
  'handoffs',
  'hosted_calls',
  'prepared_steps',
  'queue',
  'refusals',
  'skills',
  'sleep',
] as const

export type LogFeature = (typeof features)[number]

/** A test takes one out, to read as a Statewright without it. */
export const knownFeatures: Set<string> = new Set(features)

type OptionalKey<Value> = {
  [Key in keyof Value]-?: object extends Pick<Value, Key> ? Key : never
}[keyof Value]
/** Which feature each optional key belongs to; null: every version knows the key, or nothing depends on it. */
type Uses<Value, Plain = never> = { [Key in Exclude<OptionalKey<Value>, Plain>]: LogFeature | null }
type EventOf<Type> = Extract<AgentMachineEvent, { type: Type }>
type EventUses<Type> = Uses<EventOf<Type>, 'now' | 'withheld' | 'inbox' | 'key'>

/** A new event or a new key of an event does not compile until it is listed here. */
const eventUses: { [Type in AgentMachineEvent['type']]: LogFeature | EventUses<Type> } = {
  CANCEL: { why: null, partial: null },
  PAUSE: {},
  RESUME: { at: 'sleep' },
  STEER: {},
  REPLY: {},
  APPROVE: { arguments: null, fingerprint: null, messageId: null },
  REJECT: { fingerprint: null, messageId: null },
  TOOL_OUTPUT: { media: null, isError: null, fingerprint: null, messageId: null },
  TOOL_RESULT: { usage: null },
  CHILD_USAGE: {},
  CHILD_RESTS: { wakeAt: 'sleep', memo: 'elicitation' },
  TOOLS_LOADED: 'deferred_tools',
  SKILL_CHANGED: 'skills',
  HANDLE_KEPT: 'handles',
  HANDED_OFF: 'handoffs',
  BATCH_DONE: {},
  DEADLINE: { partial: null },
  RESUMED: { tools: null },
  LEFT: { usage: null, unbegun: null },
  STORE_FAILED: { partial: null },
  'xstate.done.actor.model': {},
  'xstate.error.actor.model': {},
  'xstate.done.actor.conclusion': {},
  'xstate.error.actor.conclusion': {},
  'xstate.done.actor.fitting': {},
  'xstate.done.actor.inputShields': {},
  'xstate.done.actor.outputShields': {},
  'xstate.done.actor.callShields': {},
  'xstate.done.actor.resultShields': {},
  'xstate.done.actor.retrieval': {},
  'xstate.done.actor.plan': 'prepared_steps',
  'xstate.done.actor.callGuards': {},
  'xstate.done.actor.resultGuards': {},
}

const resultUses: Uses<ToolResult> = {
  publicMessage: null,
  media: null,
  orWords: null,
  appData: null,
  errorKind: null,
  refusedBy: null,
  child: null,
  wakeAt: 'sleep',
  truncated: null,
}

const failureUses: Uses<ModelActorError> = { budget: null, wakeAt: 'sleep', refusal: 'refusals' }

const screeningUses: Uses<CallScreening> = { name: null, withoutMedia: null, asInput: 'answer_shields' }

const traitUses: Uses<ToolTraits> = {
  maxCalls: 'call_caps',
  endsRun: 'ending_results',
  deferred: 'deferred_tools',
  keepsHandle: 'handles',
  loads: 'deferred_tools',
  skill: 'skills',
  handoff: 'handoffs',
  delegate: null,
  nested: null,
}

const switchUses: Uses<Features> = { stopWhen: 'ending_results', prepareStep: 'prepared_steps' }

const stateUses: Uses<SessionState> = {
  loaded: 'deferred_tools',
  terms: 'fork_terms',
  refused: 'refusals',
  // The version of the log says so.
  numbered: null,
  ends: null,
}

/** Most records use none. */
const none: readonly LogFeature[] = []

/** The features that one record uses. */
export function listFeatures(entry: RecordContent): readonly LogFeature[] {
  switch (entry.type) {
    case 'opened':
      return listUses(stateUses, entry.state)
    case 'start': {
      const { tools, features: switches, speaker } = entry.input
      return [
        ...listTraitUses(tools),
        ...listUses(switchUses, switches),
        ...listIf(speaker !== undefined, 'handoffs'),
        ...listIf(entry.queued !== undefined, 'queue'),
      ]
    }
    case 'event':
      return listEventUses(entry.event)
    case 'snapshot': {
      const {
        tools,
        features: switches,
        speaker,
        loaded,
        terms,
        refused,
        wakeAt,
      } = entry.state.context as AgentContext
      return [
        ...listTraitUses(tools),
        ...listUses(switchUses, switches),
        ...listUses(stateUses, { terms, refused }),
        ...listIf(loaded?.length > 0, 'deferred_tools'),
        ...listIf(typeof speaker === 'string', 'handoffs'),
        ...listIf(typeof wakeAt === 'number', 'sleep'),
      ]
    }
    default:
      return none
  }
}

function listEventUses(event: AgentMachineEvent): readonly LogFeature[] {
  const uses = eventUses[event.type]
  if (typeof uses === 'string') return [uses as LogFeature]
  switch (event.type) {
    case 'RESUMED':
      return listTraitUses(event.tools)
    case 'TOOL_RESULT':
      return listUses(resultUses, event.result)
    case 'CHILD_RESTS':
      return [
        ...listUses(uses, event),
        ...listIf(
          event.questions?.some(({ own }) => own),
          'elicitation',
        ),
      ]
    case 'xstate.error.actor.model':
    case 'xstate.error.actor.conclusion':
      return listUses(failureUses, event.error as object)
    case 'xstate.done.actor.model':
      return listIf(
        event.output.response?.toolCalls?.some(({ hosted }) => hosted),
        'hosted_calls',
      )
    case 'xstate.done.actor.callShields':
    case 'xstate.done.actor.resultShields':
      return event.output.flatMap((one) => listUses(screeningUses, one))
    default:
      return listUses(uses, event)
  }
}

function listTraitUses(tools: Record<string, ToolTraits> = {}): readonly LogFeature[] {
  return Object.values(tools).flatMap((traits) => listUses(traitUses, traits))
}

function listUses(
  uses: Partial<Record<string, LogFeature | null>> | undefined,
  value: object | undefined,
): readonly LogFeature[] {
  let found = none
  if (uses === undefined || typeof value !== 'object' || value === null) return found
  for (const key in uses) {
    const feature = uses[key]
    const given = (value as Record<string, unknown>)[key]
    if (feature && given !== undefined && given !== false) found = [...found, feature]
  }
  return found
}

const listIf = (isUsed: boolean | undefined, feature: LogFeature): readonly LogFeature[] =>
  isUsed ? [feature] : none

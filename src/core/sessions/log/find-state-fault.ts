import {
  type AgentContext,
  createContext,
  noFeatures,
  type SessionState,
} from '../../../../machines/agent/context.js'
import { checkInput } from '../../config/check-input.js'
import { defaultConfig } from '../../config/defaults.js'
import {
  anything,
  openFields,
  type Kind,
  list,
  nullable,
  optional,
  predicate,
  anyText,
  choice,
  flag,
  number,
} from '../../config/kind.js'
import { ConfigError } from '../../base/errors.js'
import {
  messageKind,
  storedEnds,
  storedFit,
  storedRefusals,
  storedTerms,
  storedUsage,
} from '../session-schema.js'
import { createSessionState } from '../session-state.js'
import { isRecord } from '../../../../guards/lib/stored.js'

/** The state from a log is checked before a run uses it, because another program may have written the log. */

/** Why no run can continue from this context, as a sentence. */
export const findContextFault = (context: AgentContext): string | null => findFault(contextKind, context)

/** Why no run can start from this state, as a sentence. */
export const findStateFault = (state: SessionState): string | null => findFault(stateKind, state)

function findFault(kind: Kind, value: unknown): string | null {
  try {
    checkInput(kind, value, 'state')
    return null
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/** A schema from a sample, with its keys and types. Nested objects may be null unless `canBeOff` is false. */
function kindLike(sample: unknown, { canBeOff = true } = {}): Kind {
  if (isRecord(sample)) {
    const keys = Object.entries(sample).map(([key, value]) => [
      key,
      canBeOff || !isRecord(value) ? nullable(kindLike(value)) : kindLike(value),
    ])
    return openFields(Object.fromEntries(keys) as Record<string, Kind>)
  }
  if (Array.isArray(sample)) return predicate((value) => Array.isArray(value), 'a list')
  return sample === null
    ? anything
    : predicate((value) => typeof value === typeof sample, `a ${typeof sample}`)
}

const finiteNumber = () => number(-Infinity, Infinity, 'a number')
const storedGrants = list(
  openFields(
    {
      id: anyText(),
      tool: anyText(),
      when: optional(predicate(isRecord, 'an object')),
      until: optional(finiteNumber()),
      uses: optional(finiteNumber()),
      givers: list(anything),
    },
    'a grant',
  ),
)
const textList = () => list(anyText())

/** Reads each object only once, because most parts of a state are also parts of the next. */
function once(kind: Kind): Kind {
  const sound = new WeakSet<object>()
  return {
    ...kind,
    read(value, path, report) {
      const isObject = typeof value === 'object' && value !== null
      if (isObject && sound.has(value)) return value
      let isSound = true
      kind.read(value, path, (...fault) => {
        isSound = false
        report(...fault)
      })
      if (isObject && isSound) sound.add(value)
      return value
    },
  }
}

const soundMessage = once(messageKind)

function isMessage(value: unknown): boolean {
  let isSound = true
  soundMessage.read(value, [], () => {
    isSound = false
  })
  return isSound
}

const eachOnce = (shape: Record<string, Kind>): Kind =>
  openFields(Object.fromEntries(Object.entries(shape).map(([key, kind]) => [key, once(kind)])))

const isTraitsByName = (value: unknown): boolean => isRecord(value) && Object.values(value).every(isRecord)

const storedTime = number(-8.64e15, 8.64e15, 'a time')

const callKind = openFields(
  {
    id: anyText(),
    name: anyText(),
    arguments: anyText(),
    needs: choice('nobody', 'approval', 'client', 'child'),
    result: optional(
      openFields({ status: anyText(), content: anyText(), durationMs: finiteNumber() }, 'a result'),
    ),
    fact: optional(openFields({ name: anyText(), fingerprint: anyText(), shown: anyText() })),
    questions: optional(
      list(
        openFields(
          { callId: anyText(), name: anyText(), arguments: anyText(), expiresAt: optional(storedTime) },
          'a question',
        ),
      ),
    ),
    childUsage: optional(storedUsage),
    expiresAt: optional(storedTime),
  },
  'a call',
)

const {
  messages: _messages,
  guardrails,
  ...counters
} = createContext({
  ...createSessionState(),
  now: 0,
  runId: '',
  sessionId: '',
  config: defaultConfig,
  tools: {},
  features: noFeatures,
  input: [],
})

const sessionFields = {
  messages: predicate((value) => Array.isArray(value) && value.every(isMessage), 'a list of messages'),
  fit: nullable(storedFit),
  guardrails: kindLike(guardrails),
  warnedOfBudget: flag(),
  terms: optional(storedTerms),
  turnEnds: optional(storedEnds),
  refusals: optional(storedRefusals),
  grants: optional(storedGrants),
}

const stateKind = eachOnce({ ...sessionFields, usage: storedUsage, loaded: optional(textList()) })

const contextKind = eachOnce({
  ...Object.fromEntries(Object.entries(counters).map(([key, value]) => [key, kindLike(value)])),
  ...sessionFields,
  config: kindLike(defaultConfig, { canBeOff: false }),
  features: kindLike(noFeatures),
  tools: predicate(isTraitsByName, 'an object that maps tool names to traits'),
  usage: openFields({ run: storedUsage, session: storedUsage }),
  calls: list(callKind),
  pausing: predicate(
    (value) => typeof value === 'boolean' || value === 'approval_expired',
    'a boolean, or approval_expired',
  ),
  wakeAt: nullable(storedTime),
  loaded: textList(),
  skills: list(
    openFields(
      { name: anyText(), hash: anyText(), messageId: anyText(), allowedTools: optional(textList()) },
      'a skill',
    ),
  ),
  steering: textList(),
  nudges: textList(),
  error: nullable(openFields({ code: anyText(), message: anyText() }, 'an error')),
  retrieved: nullable(list(openFields({ source: anyText(), text: anyText() }, 'a snippet'))),
})

import {
  type AgentContext,
  createContext,
  noFeatures,
  type SessionState,
} from '../../../../machines/agent/context.js'
import { check } from '../../config/check.js'
import { defaultConfig } from '../../config/defaults.js'
import { anything, fields, type Kind, list, nullable, optional, that } from '../../config/kind.js'
import { anyText, choice, flag, number } from '../../config/values.js'
import { ConfigError } from '../../base/errors.js'
import { storedFit, storedUsage } from '../stored-session.js'
import { emptySession } from '../session-state.js'
import { isRecord } from './whole-context.js'

/** What a log leads to, judged before anybody relies on it: another program may have written in it. */

/** Why nothing can go on from there, in a sentence; null when it can. */
export function faultOf(context: AgentContext): string | null {
  return faultIn(soundContext, context)
}

/** The same for what a session begins with. */
export function faultOfState(state: SessionState): string | null {
  return faultIn(soundState, state)
}

function faultIn(kind: Kind, value: unknown): string | null {
  try {
    check(kind, value, 'state')
    return null
  } catch (error) {
    if (error instanceof ConfigError) return error.message
    throw error
  }
}

/**
 * What has the form of a sample: its keys, each with a value of the same sort, or null for what can be off. Of its own
 * objects, those of `canBeOff: false` cannot.
 */
function like(sample: unknown, { canBeOff = true } = {}): Kind {
  if (isRecord(sample)) {
    const keys = Object.entries(sample).map(([key, value]) => [
      key,
      canBeOff || !isRecord(value) ? nullable(like(value)) : like(value),
    ])
    return fields(Object.fromEntries(keys) as Record<string, Kind>, 'an object', 'open')
  }
  if (Array.isArray(sample)) return that((value) => Array.isArray(value), 'a list')
  return sample === null ? anything : that((value) => typeof value === typeof sample, `a ${typeof sample}`)
}

const finite = () => number(-Infinity, Infinity, 'a number')
const texts = () => list(anyText(), 'a list')

/** A look at what everybody relies on: there may be thousands. */
function isMessage(value: unknown): boolean {
  if (!isRecord(value)) return false
  const {
    role,
    id,
    createdAt,
    content,
    tool_call_id: answered,
    tool_calls: asked,
    refusal,
    reasoning,
    data,
  } = value
  const isStamped =
    typeof id === 'string' && typeof createdAt === 'number' && (data === undefined || isRecord(data))
  if (!isStamped) return false
  switch (role) {
    case 'user':
      return typeof content === 'string' || (Array.isArray(content) && content.every(isPart))
    case 'assistant':
      return (
        (content === null || typeof content === 'string') &&
        (asked === undefined || (Array.isArray(asked) && asked.every(isAskedCall))) &&
        [refusal, reasoning].every((words) => words === undefined || typeof words === 'string')
      )
    case 'tool':
      return typeof content === 'string' && typeof answered === 'string'
    default:
      return role === 'system' && typeof content === 'string'
  }
}

const isPart = (part: unknown): boolean => isRecord(part) && typeof part['type'] === 'string'

function isAskedCall(value: unknown): boolean {
  if (!isRecord(value) || typeof value['id'] !== 'string' || !isRecord(value['function'])) return false
  const { name, arguments: text } = value['function']
  return typeof name === 'string' && typeof text === 'string'
}

const call = fields(
  {
    id: anyText(),
    name: anyText(),
    arguments: anyText(),
    needs: choice('nobody', 'approval', 'client', 'child'),
    result: optional(
      fields({ status: anyText(), content: anyText(), durationMs: finite() }, 'a result', 'open'),
    ),
    fact: optional(
      fields({ name: anyText(), fingerprint: anyText(), shown: anyText() }, 'an object', 'open'),
    ),
    questions: optional(
      list(
        fields({ callId: anyText(), name: anyText(), arguments: anyText() }, 'a question', 'open'),
        'a list',
      ),
    ),
    childUsage: optional(storedUsage),
  },
  'a call',
  'open',
)

const {
  messages: _messages,
  guardrails,
  ...counters
} = createContext({
  ...emptySession(),
  now: 0,
  runId: '',
  sessionId: '',
  config: defaultConfig,
  tools: {},
  features: noFeatures,
  input: [],
})

const session = {
  messages: that((value) => Array.isArray(value) && value.every(isMessage), 'a list of messages'),
  fit: nullable(storedFit),
  guardrails: like(guardrails),
  warnedOfBudget: flag(),
}

const soundState = fields({ ...session, usage: storedUsage }, 'an object', 'open')

const soundContext = fields(
  {
    ...Object.fromEntries(Object.entries(counters).map(([key, value]) => [key, like(value)])),
    ...session,
    config: like(defaultConfig, { canBeOff: false }),
    features: like(noFeatures),
    usage: fields({ run: storedUsage, session: storedUsage }, 'an object', 'open'),
    calls: list(call, 'a list'),
    steering: texts(),
    nudges: texts(),
    error: nullable(fields({ code: anyText(), message: anyText() }, 'an error', 'open')),
    retrieved: nullable(list(fields({ source: anyText(), text: anyText() }, 'a snippet', 'open'), 'a list')),
  },
  'an object',
  'open',
)

import {
  type AgentContext,
  createContext,
  noFeatures,
  type SessionState,
} from '../../../machines/agent/context.js'
import { isRecord } from '../../../guards/lib/stored.js'
import { ConfigError } from '../base/errors.js'
import { checkInput } from '../config/check-input.js'
import { defaultConfig } from '../config/defaults.js'
import * as is from '../config/kind.js'
import type { Kind, Shape } from '../config/kind.js'
import { createSessionState } from './session-state.js'

/** The shapes of stored sessions and states. Unknown keys are allowed, because transcripts contain provider-specific keys. */

const finiteNumber = () => is.number(-Infinity, Infinity, 'a number')
const textList = () => is.list(is.anyText())
const nonNegative = () => is.number(0, Infinity, 'a non-negative number')
const exactly = <const Value>(value: Value) =>
  is.predicate<Value>((candidate) => candidate === value, JSON.stringify(value))

const stampFields = {
  id: is.nonEmptyText(),
  createdAt: nonNegative(),
  internal: is.optional(exactly(true)),
  data: is.optional(is.map(is.anything, 'an object')),
}

const typed = <const Of extends Shape>(shape: Of) => is.openFields({ type: is.anyText(), ...shape })

const partKind = is.taggedUnion(
  'type',
  {
    text: typed({ text: is.anyText() }),
    image_url: typed({ image_url: is.openFields({ url: is.anyText() }) }),
    input_audio: typed({ input_audio: is.openFields({ data: is.anyText(), format: is.anyText() }) }),
    file: typed({
      file: is.openFields({
        file_data: is.optional(is.anyText()),
        file_id: is.optional(is.anyText()),
        filename: is.optional(is.anyText()),
      }),
    }),
  },
  'a known kind of part',
)

const annotationKind = is.taggedUnion(
  'type',
  {
    url_citation: typed({
      url_citation: is.openFields({ url: is.anyText(), title: is.optional(is.anyText()) }),
    }),
    file_citation: typed({
      file_citation: is.openFields({ filename: is.anyText(), title: is.optional(is.anyText()) }),
    }),
  },
  'a known kind of source',
)

const toolCallKind = is.openFields(
  {
    id: is.nonEmptyText(),
    type: is.choice('function'),
    function: is.openFields(
      { name: is.anyText(), arguments: is.anyText() },
      'an object with name and arguments',
    ),
    hosted: is.optional(is.openFields({ from: is.anyText(), server: is.anyText() })),
  },
  'a call',
)

const mediaFields = { media: is.optional(is.list(partKind)) }
const messageFields = <const Of extends Shape>(shape: Of) =>
  is.openFields({ ...stampFields, role: is.anyText(), ...shape })

const messageKind = is.taggedUnion(
  'role',
  {
    system: messageFields({ content: is.anyText() }),
    user: messageFields({
      content: is.union([is.anyText(), is.list(partKind)], 'a string or a list of parts'),
    }),
    assistant: messageFields({
      content: is.nullable(is.anyText()),
      tool_calls: is.optional(is.list(toolCallKind)),
      refusal: is.optional(is.anyText()),
      reasoning: is.optional(is.anyText()),
      reasoning_details: is.optional(is.list(is.anything)),
      annotations: is.optional(is.list(annotationKind)),
      provider_items: is.optional(is.openFields({ from: is.anyText(), items: is.list(is.anything) })),
      by: is.optional(is.anyText()),
      ...mediaFields,
    }),
    tool: messageFields({
      tool_call_id: is.nonEmptyText(),
      content: is.anyText(),
      ...mediaFields,
    }),
  },
  "a message whose role is 'system', 'user', 'assistant' or 'tool'",
)

const storedUsage = is.openFields(
  {
    inputTokens: nonNegative(),
    outputTokens: nonNegative(),
    totalTokens: nonNegative(),
    cachedInputTokens: nonNegative(),
    cacheWriteTokens: is.optional(nonNegative()),
    reasoningTokens: nonNegative(),
    cost: is.nullable(nonNegative()),
    estimated: is.flag(),
  },
  'the totals of a session',
)

const storedFit = is.openFields(
  { head: nonNegative(), from: nonNegative(), note: is.nullable(is.anyText()) },
  'the parts of the transcript that requests omit',
)

/** The parts of a session's state that most sessions lack. */
const rareFields = {
  terms: is.optional(
    is.openFields(
      { instructions: is.optional(is.anyText()), askFirst: is.optional(is.flag()) },
      'the terms of a fork',
    ),
  ),
  turnEnds: is.optional(
    is.list(
      is.openFields(
        {
          messageId: is.anyText(),
          state: is.anyText(),
          reason: is.anyText(),
          error: is.optional(is.openFields({ code: is.anyText(), message: is.anyText() }, 'an error')),
        },
        'the end of a run',
      ),
    ),
  ),
  refusals: is.optional(
    is.list(
      is.taggedUnion(
        'what',
        {
          messages: is.openFields({
            what: is.anyText(),
            ids: textList(),
            question: is.nullable(is.anyText()),
          }),
          media: is.openFields({
            what: is.anyText(),
            model: is.anyText(),
            kinds: is.optional(is.list(is.choice('image', 'audio', 'file'))),
            parts: is.optional(textList()),
          }),
          reasoning: is.openFields({
            what: is.anyText(),
            model: is.anyText(),
            upTo: is.nullable(nonNegative()),
          }),
        },
        "a refusal with what: 'messages', 'media' or 'reasoning'",
      ),
      'a list of refusals',
    ),
  ),
}

export const storedSession = is.openFields(
  {
    version: is.optional(nonNegative()),
    id: is.nonEmptyText(),
    name: is.optional(is.anyText()),
    messages: is.list(messageKind),
    usage: is.optional(storedUsage),
    metadata: is.optional(
      is.openFields({
        guardrails: is.anything,
        warnedOfBudget: is.optional(is.flag()),
        fit: is.optional(is.nullable(storedFit)),
        loaded: is.optional(textList()),
        ...rareFields,
      }),
    ),
  },
  'the object that session.toJSON() returns',
)

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
      canBeOff || !isRecord(value) ? is.nullable(kindLike(value)) : kindLike(value),
    ])
    return is.openFields(Object.fromEntries(keys) as Record<string, Kind>)
  }
  if (Array.isArray(sample)) return is.predicate((value) => Array.isArray(value), 'a list')
  return sample === null
    ? is.anything
    : is.predicate((value) => typeof value === typeof sample, `a ${typeof sample}`)
}

const storedGrants = is.list(
  is.openFields(
    {
      id: is.anyText(),
      tool: is.anyText(),
      when: is.optional(is.predicate(isRecord, 'an object')),
      until: is.optional(finiteNumber()),
      uses: is.optional(finiteNumber()),
      givers: is.list(is.anything),
    },
    'a grant',
  ),
)

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
  is.openFields(Object.fromEntries(Object.entries(shape).map(([key, kind]) => [key, once(kind)])))

const isTraitsByName = (value: unknown): boolean => isRecord(value) && Object.values(value).every(isRecord)

const storedTime = is.number(-8.64e15, 8.64e15, 'a time')

const batchCallKind = is.openFields(
  {
    id: is.anyText(),
    name: is.anyText(),
    arguments: is.anyText(),
    needs: is.choice('nobody', 'approval', 'client', 'child'),
    result: is.optional(
      is.openFields({ status: is.anyText(), content: is.anyText(), durationMs: finiteNumber() }, 'a result'),
    ),
    fact: is.optional(is.openFields({ name: is.anyText(), fingerprint: is.anyText(), shown: is.anyText() })),
    questions: is.optional(
      is.list(
        is.openFields(
          {
            callId: is.anyText(),
            name: is.anyText(),
            arguments: is.anyText(),
            expiresAt: is.optional(storedTime),
          },
          'a question',
        ),
      ),
    ),
    childUsage: is.optional(storedUsage),
    expiresAt: is.optional(storedTime),
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
  messages: is.predicate((value) => Array.isArray(value) && value.every(isMessage), 'a list of messages'),
  fit: is.nullable(storedFit),
  guardrails: kindLike(guardrails),
  warnedOfBudget: is.flag(),
  ...rareFields,
  grants: is.optional(storedGrants),
}

const stateKind = eachOnce({ ...sessionFields, usage: storedUsage, loaded: is.optional(textList()) })

const contextKind = eachOnce({
  ...Object.fromEntries(Object.entries(counters).map(([key, value]) => [key, kindLike(value)])),
  ...sessionFields,
  config: kindLike(defaultConfig, { canBeOff: false }),
  features: kindLike(noFeatures),
  tools: is.predicate(isTraitsByName, 'an object that maps tool names to traits'),
  usage: is.openFields({ run: storedUsage, session: storedUsage }),
  calls: is.list(batchCallKind),
  pausing: is.predicate(
    (value) => typeof value === 'boolean' || value === 'approval_expired',
    'a boolean, or approval_expired',
  ),
  wakeAt: is.nullable(storedTime),
  loaded: textList(),
  skills: is.list(
    is.openFields(
      {
        name: is.anyText(),
        hash: is.anyText(),
        messageId: is.anyText(),
        allowedTools: is.optional(textList()),
      },
      'a skill',
    ),
  ),
  steering: textList(),
  nudges: textList(),
  error: is.nullable(is.openFields({ code: is.anyText(), message: is.anyText() }, 'an error')),
  retrieved: is.nullable(is.list(is.openFields({ source: is.anyText(), text: is.anyText() }, 'a snippet'))),
})

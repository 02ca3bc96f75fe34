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
import {
  anything,
  union,
  openFields,
  type Kind,
  list,
  map,
  nullable,
  optional,
  taggedUnion,
  predicate,
  type Shape,
  anyText,
  choice,
  flag,
  number,
  nonEmptyText,
} from '../config/kind.js'
import { createSessionState } from './session-state.js'

/** The shapes of stored sessions and states. Unknown keys are allowed, because transcripts contain provider-specific keys. */

const finiteNumber = () => number(-Infinity, Infinity, 'a number')
const textList = () => list(anyText())
const nonNegative = () => number(0, Infinity, 'a non-negative number')
const exactly = <const Value>(value: Value) =>
  predicate<Value>((candidate) => candidate === value, JSON.stringify(value))

const stampFields = {
  id: nonEmptyText(),
  createdAt: nonNegative(),
  internal: optional(exactly(true)),
  data: optional(map(anything, 'an object')),
}

const typed = <const Of extends Shape>(shape: Of) => openFields({ type: anyText(), ...shape })

const partKind = taggedUnion(
  'type',
  {
    text: typed({ text: anyText() }),
    image_url: typed({ image_url: openFields({ url: anyText() }) }),
    input_audio: typed({ input_audio: openFields({ data: anyText(), format: anyText() }) }),
    file: typed({
      file: openFields({
        file_data: optional(anyText()),
        file_id: optional(anyText()),
        filename: optional(anyText()),
      }),
    }),
  },
  'a known kind of part',
)

const annotationKind = taggedUnion(
  'type',
  {
    url_citation: typed({ url_citation: openFields({ url: anyText(), title: optional(anyText()) }) }),
    file_citation: typed({ file_citation: openFields({ filename: anyText(), title: optional(anyText()) }) }),
  },
  'a known kind of source',
)

const toolCallKind = openFields(
  {
    id: nonEmptyText(),
    type: choice('function'),
    function: openFields({ name: anyText(), arguments: anyText() }, 'an object with name and arguments'),
    hosted: optional(openFields({ from: anyText(), server: anyText() })),
  },
  'a call',
)

const mediaFields = { media: optional(list(partKind)) }
const messageFields = <const Of extends Shape>(shape: Of) =>
  openFields({ ...stampFields, role: anyText(), ...shape })

const messageKind = taggedUnion(
  'role',
  {
    system: messageFields({ content: anyText() }),
    user: messageFields({
      content: union([anyText(), list(partKind)], 'a string or a list of parts'),
    }),
    assistant: messageFields({
      content: nullable(anyText()),
      tool_calls: optional(list(toolCallKind)),
      refusal: optional(anyText()),
      reasoning: optional(anyText()),
      reasoning_details: optional(list(anything)),
      annotations: optional(list(annotationKind)),
      provider_items: optional(openFields({ from: anyText(), items: list(anything) })),
      by: optional(anyText()),
      ...mediaFields,
    }),
    tool: messageFields({
      tool_call_id: nonEmptyText(),
      content: anyText(),
      ...mediaFields,
    }),
  },
  "a message whose role is 'system', 'user', 'assistant' or 'tool'",
)

const storedUsage = openFields(
  {
    inputTokens: nonNegative(),
    outputTokens: nonNegative(),
    totalTokens: nonNegative(),
    cachedInputTokens: nonNegative(),
    cacheWriteTokens: optional(nonNegative()),
    reasoningTokens: nonNegative(),
    cost: nullable(nonNegative()),
    estimated: flag(),
  },
  'the totals of a session',
)

const storedFit = openFields(
  { head: nonNegative(), from: nonNegative(), note: nullable(anyText()) },
  'the parts of the transcript that requests omit',
)

/** The parts of a session's state that most sessions lack. */
const rareFields = {
  terms: optional(
    openFields({ instructions: optional(anyText()), askFirst: optional(flag()) }, 'the terms of a fork'),
  ),
  turnEnds: optional(
    list(
      openFields(
        {
          messageId: anyText(),
          state: anyText(),
          reason: anyText(),
          error: optional(openFields({ code: anyText(), message: anyText() }, 'an error')),
        },
        'the end of a run',
      ),
    ),
  ),
  refusals: optional(
    list(
      taggedUnion(
        'what',
        {
          messages: openFields({ what: anyText(), ids: textList(), question: nullable(anyText()) }),
          media: openFields({
            what: anyText(),
            model: anyText(),
            kinds: optional(list(choice('image', 'audio', 'file'))),
            parts: optional(textList()),
          }),
          reasoning: openFields({ what: anyText(), model: anyText(), upTo: nullable(nonNegative()) }),
        },
        "a refusal with what: 'messages', 'media' or 'reasoning'",
      ),
      'a list of refusals',
    ),
  ),
}

export const storedSession = openFields(
  {
    version: optional(nonNegative()),
    id: nonEmptyText(),
    name: optional(anyText()),
    messages: list(messageKind),
    usage: optional(storedUsage),
    metadata: optional(
      openFields({
        guardrails: anything,
        warnedOfBudget: optional(flag()),
        fit: optional(nullable(storedFit)),
        loaded: optional(textList()),
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
      canBeOff || !isRecord(value) ? nullable(kindLike(value)) : kindLike(value),
    ])
    return openFields(Object.fromEntries(keys) as Record<string, Kind>)
  }
  if (Array.isArray(sample)) return predicate((value) => Array.isArray(value), 'a list')
  return sample === null
    ? anything
    : predicate((value) => typeof value === typeof sample, `a ${typeof sample}`)
}

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

const batchCallKind = openFields(
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
  ...rareFields,
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
  calls: list(batchCallKind),
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

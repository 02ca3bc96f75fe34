import {
  anything,
  union,
  openFields,
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

/** The schema of a stored session. Unknown keys are allowed, because transcripts contain provider-specific keys. */

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

const callKind = openFields(
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

export const messageKind = taggedUnion(
  'role',
  {
    system: messageFields({ content: anyText() }),
    user: messageFields({
      content: union([anyText(), list(partKind)], 'a string or a list of parts'),
    }),
    assistant: messageFields({
      content: nullable(anyText()),
      tool_calls: optional(list(callKind)),
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

export const storedUsage = openFields(
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

export const storedFit = openFields(
  { head: nonNegative(), from: nonNegative(), note: nullable(anyText()) },
  'the parts of the transcript that requests omit',
)

export const storedTerms = openFields(
  { instructions: optional(anyText()), askFirst: optional(flag()) },
  'the terms of a fork',
)

export const storedEnds = list(
  openFields(
    {
      messageId: anyText(),
      state: anyText(),
      reason: anyText(),
      error: optional(openFields({ code: anyText(), message: anyText() }, 'an error')),
    },
    'the end of a run',
  ),
)

export const storedRefusals = list(
  taggedUnion(
    'what',
    {
      messages: openFields({ what: anyText(), ids: list(anyText()), question: nullable(anyText()) }),
      media: openFields({
        what: anyText(),
        model: anyText(),
        kinds: optional(list(choice('image', 'audio', 'file'))),
        parts: optional(list(anyText())),
      }),
      reasoning: openFields({ what: anyText(), model: anyText(), upTo: nullable(nonNegative()) }),
    },
    "a refusal with what: 'messages', 'media' or 'reasoning'",
  ),
  'a list of refusals',
)

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
        loaded: optional(list(anyText())),
        terms: optional(storedTerms),
        turnEnds: optional(storedEnds),
        refusals: optional(storedRefusals),
      }),
    ),
  },
  'the object that session.toJSON() returns',
)

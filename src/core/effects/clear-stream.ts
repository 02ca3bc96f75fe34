import type { AgentContext } from '../../../machines/agent/context.js'
import { HoldBack } from '../shields/hold-back.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { screenText } from './screen-text.js'
import type { Json } from '../../../machines/agent/json.js'
import type { ModelResponse } from '../../../machines/agent/model-response.js'
import { withheldReasoning } from '../../../machines/agent/screening.js'
import { getReadableText } from '../shields/readable-part.js'

type Reasoning = Pick<
  ModelResponse,
  'reasoning' | 'reasoningDetails' | 'providerItems' | 'media' | 'annotations'
>

/**
 * An answer with its reasoning as output shields cleared it. Blocked reasoning is left out, and the run continues.
 * Signed details, and a provider's own items, go back unchanged or not at all.
 */
export async function clearReasoning<Response extends Reasoning>(
  parts: AgentParts,
  scene: { runtime: AgentRuntime; context: AgentContext; signal: AbortSignal },
  response: Response,
): Promise<Response> {
  const { reasoning, reasoningDetails: details, providerItems: items, media, annotations, ...rest } = response
  const said = await screenReasoning(reasoning, parts, scene)
  const isClear = async (texts: string): Promise<boolean> =>
    (await screenReasoning(texts, parts, scene)) === texts
  const keeps = async (value: Json | undefined): Promise<boolean> =>
    value !== undefined && said === reasoning && isClear(listTexts(value).join('\n'))
  // Of pictures and documents what is text in them, as everywhere.
  const readable = (media ?? []).map(getReadableText).filter((text) => text !== '')
  return {
    ...rest,
    reasoning: said,
    ...((await keeps(details)) && { reasoningDetails: details }),
    ...((await keeps(items?.items)) && { providerItems: items }),
    ...(media && (await isClear(readable.join('\n'))) && { media }),
    ...(annotations && (await isClear(listTexts(annotations).join('\n'))) && { annotations }),
  } as Response
}

async function screenReasoning(
  text: string,
  parts: AgentParts,
  scene: { runtime: AgentRuntime; context: AgentContext; signal: AbortSignal },
): Promise<string> {
  if (text === '') return text
  const { action, content, findings } = await screenText(parts, scene, 'output', text)
  scene.signal.throwIfAborted()
  for (const { shield, action: found, message, durationMs } of findings) {
    if (found === 'allow') continue
    const told = found === 'block' ? 'redact' : found
    scene.runtime.emit({ type: 'shield', point: 'output', shield, action: told, message, durationMs })
  }
  return action === 'block' ? withheldReasoning : content
}

function listTexts(value: Json): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, item]) => (keysWithoutText.has(key) ? [] : listTexts(item)))
}

/**
 * Keys whose values only the provider reads: in such ids and ciphertexts shields would find false secrets and card
 * numbers.
 */
const keysWithoutText = new Set(
  `id call_id itemId said signature thoughtSignature redactedData encrypted_content reasoningEncryptedContent`.split(
    ' ',
  ),
)

/** Where the deltas of an answer go. */
export interface DeltaSink {
  write(text: string, reasoning: string): void
  /** Takes back what was written: another answer begins. */
  restart(): void
  /** No delta comes any more: what was not released by now waits for the whole answer to be cleared. */
  finish?(): Promise<void>
}

/** Of a stream what output shields have cleared; never its reasoning. */
export function createClearedStream(
  parts: AgentParts,
  stream: AnswerStream,
  scene: { runtime: AgentRuntime; context: AgentContext; signal: AbortSignal },
): DeltaSink {
  const { spoken, pieces } = scene.context
  const begin = (): HoldBack => {
    const begun = new HoldBack({
      window: parts.shields.holdBack,
      ...(spoken && { continues: { text: spoken.text, released: pieces } }),
      check: (text) => screenText(parts, scene, 'output', text),
      release: (text) => {
        if (begun === held) stream.write(text, '')
      },
    })
    return begun
  }
  let held = begin()
  return {
    write: (text) => {
      if (text !== '') held.write(text)
    },
    restart: () => {
      held = begin()
      stream.restart()
    },
    finish: async () => {
      await held.finish()
    },
  }
}

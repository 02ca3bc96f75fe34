import type { AgentContext } from '../../../machines/agent/context.js'
import { HoldBack } from '../shields/hold-back.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { AgentRuntime } from '../live/runtime.js'
import type { AgentParts } from '../live/agent-parts.js'
import { screenText } from './screen-text.js'

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

import type { AgentContext } from '../../../machines/agent/context.js'
import { HoldBack } from '../shields/hold-back.js'
import type { AnswerStream } from '../live/answer-stream.js'
import type { Live } from '../live/live.js'
import type { AgentParts } from '../live/parts.js'
import { screen } from './shielding.js'

/** Where the deltas of an answer go. */
export interface DeltaSink {
  write(text: string, reasoning: string): void
  /** Takes back what was written: another answer begins. */
  restart(): void
  /** No delta comes any more: what was not released by now waits for the whole answer to be cleared. */
  finish(): Promise<void> | undefined
}

/** The stream as it is, or, where output shields are on, only what they have cleared of it; never its reasoning. */
export function deltaSink(
  parts: AgentParts,
  stream: AnswerStream,
  scene: { live: Live; context: AgentContext; readonly signal: AbortSignal },
): DeltaSink {
  if (!scene.context.features.outputShields) {
    return {
      write: (text, reasoning) => {
        stream.write(text, reasoning)
      },
      restart: () => {
        stream.restart()
      },
      finish: () => undefined,
    }
  }
  const { spoken, pieces } = scene.context
  const begin = (): HoldBack => {
    const begun = new HoldBack({
      window: parts.shields.holdBack,
      ...(spoken && { continues: { text: spoken.text, released: pieces } }),
      check: (text) => screen(parts, scene, 'output', text),
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

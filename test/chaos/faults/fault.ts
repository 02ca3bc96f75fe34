import { type Act, answered, delta, json, type Script, streamed } from '../script.js'
import type { World } from '../world.js'

/** A request, as a fault sees it. */
export interface Scene {
  world: World
  stream: boolean
  /** Names of the tools that the request offers. */
  tools: readonly string[]
  /** The text of a healthy answer. */
  text: string
}

/** The behavior of a provider or intermediary in place of a good answer. */
export type Fault = (scene: Scene) => Script

export const half = '\ud83d'

/** One of the tools that the request offers. */
export function some({ tools, world }: Scene): string {
  return tools.length > 0 ? world.pick(tools) : 'look'
}

export function failure(message: string, fields: object = {}) {
  return { error: { message, type: 'server_error', ...fields } }
}

export function asking(
  calls: (scene: Scene) => readonly { id?: unknown; name?: unknown; arguments?: unknown }[],
): Fault {
  return (scene) => answered({ calls: calls(scene) }, scene.stream)
}

export function saying(fields: Parameters<typeof answered>[0]): Fault {
  return ({ stream }) => answered(fields, stream)
}

/** The same bytes, regardless of the requested form. */
export function raw(
  body: Iterable<Act>,
  type?: string,
  status = 200,
  headers: Record<string, string> = {},
): Fault {
  return ({ stream }) => ({
    status,
    headers: { 'content-type': type ?? (stream ? 'text/event-stream' : 'application/json'), ...headers },
    body,
  })
}

/** An answer that contains this message or delta. */
export function inChoice(message: unknown, finish: unknown = 'stop'): Fault {
  return ({ stream }) =>
    stream
      ? streamed(delta(message, finish), 'data: [DONE]\n\n')
      : json({ id: 'c', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: finish }] })
}

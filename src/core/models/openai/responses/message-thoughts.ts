import type { JsonObject } from '../../../../../machines/agent/json.js'
import { asList, asObject, asText } from '../../../base/values.js'
import { noDelta } from '../delta.js'
import { mayHaveTag, ThinkSplitter } from '../think-tags.js'

/** Whether a part of a message is a thought, as servers for open models write them there. */
export function isThought({ type }: JsonObject): boolean {
  return ['reasoning_text', 'reasoning', 'thinking', 'summary_text'].includes(asText(type))
}

export const readThought = ({ text, thinking }: JsonObject): string => asText(text) || asText(thinking)

/** Splits a message into words and thoughts. Thoughts are reasoning parts, or text inside tags such as `<think>`. */
export function splitMessage(message: JsonObject): { message: JsonObject; thoughts: string[] } {
  const parts = asList(message.content).map((part) => asObject(part) ?? {})
  if (!parts.some((part) => isThought(part) || mayHaveTag(asText(part.text))))
    return { message, thoughts: [] }
  const thoughts = parts.filter(isThought).map(readThought)
  const splitter = new ThinkSplitter()
  let tagged = ''
  const words = parts.filter((part) => !isThought(part))
  const last = words.findLastIndex(({ text }) => typeof text === 'string')
  const content = words.map((part, i) => {
    if (typeof part.text !== 'string') return part
    const added = splitter.push(part.text)
    const end = i === last ? splitter.flush() : noDelta
    tagged += added.reasoning + end.reasoning
    return { ...part, text: added.text + end.text }
  })
  return {
    message: { ...message, content },
    thoughts: [...thoughts, tagged].filter((thought) => thought !== ''),
  }
}

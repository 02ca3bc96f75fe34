import type { Message } from '../../../machines/agent/messages.js'
import type { ShieldPoint } from './shield.js'

/** The hazard categories of Llama Guard 3 and 4, as Meta's model cards name them (MLCommons' taxonomy and S14). */
export const llamaGuardCategories = {
  S1: 'Violent Crimes',
  S2: 'Non-Violent Crimes',
  S3: 'Sex-Related Crimes',
  S4: 'Child Sexual Exploitation',
  S5: 'Defamation',
  S6: 'Specialized Advice',
  S7: 'Privacy',
  S8: 'Intellectual Property',
  S9: 'Indiscriminate Weapons',
  S10: 'Hate',
  S11: 'Suicide & Self-Harm',
  S12: 'Sexual Content',
  S13: 'Elections',
  S14: 'Code Interpreter Abuse',
} as const

export type LlamaGuardCategory = keyof typeof llamaGuardCategories

export interface GuardedTurn {
  role: 'user' | 'assistant'
  content: string
}

/**
 * What the model is to judge, the last turn: what comes in is a user's, what the model writes an agent's. An agent's
 * turn is judged together with the user's before it, as Meta's documentation asks; templates refuse one alone, so that
 * without the transcript it is judged as a user's.
 */
export function toConversation(
  content: string,
  point: ShieldPoint,
  messages: readonly Message[] = [],
): GuardedTurn[] {
  const isAgents = point === 'output' || point === 'toolInput'
  const asked = isAgents ? findLastUserText(messages) : ''
  if (asked === '') return [{ role: 'user', content: escapeMarkers(content) }]
  return [
    { role: 'user', content: escapeMarkers(asked) },
    { role: 'assistant', content: escapeMarkers(content) },
  ]
}

/**
 * The prompt that Llama Guard 3 and 4 were trained on, for endpoints that do not put it together themselves:
 * llama.com/docs/model-cards-and-prompt-formats/llama-guard-4.
 */
export function formatLlamaGuardPrompt(
  turns: readonly GuardedTurn[],
  categories: readonly LlamaGuardCategory[],
): string {
  const role = turns.at(-1)?.role === 'assistant' ? 'Agent' : 'User'
  return [
    `Task: Check if there is unsafe content in '${role}' messages in conversations according our safety policy with the below categories.`,
    '',
    '<BEGIN UNSAFE CONTENT CATEGORIES>',
    ...categories.map((code) => `${code}: ${llamaGuardCategories[code]}.`),
    '<END UNSAFE CONTENT CATEGORIES>',
    '',
    '<BEGIN CONVERSATION>',
    '',
    ...turns.flatMap((turn) => [`${turn.role === 'assistant' ? 'Agent' : 'User'}: ${turn.content}`, '']),
    '<END CONVERSATION>',
    '',
    `Provide your safety assessment for ONLY THE LAST ${role} in the above conversation:`,
    " - First line must read 'safe' or 'unsafe'.",
    ' - If unsafe, a second line must include a comma-separated list of violated categories.',
  ].join('\n')
}

function findLastUserText(messages: readonly Message[]): string {
  const message = messages.findLast((one) => one.role === 'user' && one.internal !== true)
  if (message?.role !== 'user') return ''
  if (typeof message.content === 'string') return message.content.trim()
  return message.content
    .flatMap((part) => (part.type === 'text' ? [part.text] : []))
    .join('\n')
    .trim()
}

/** What is judged must not end the conversation, or the turn, on its own account. */
function escapeMarkers(text: string): string {
  return text.replace(/<(?=\||(?:BEGIN|END) (?:CONVERSATION|UNSAFE CONTENT))/gi, '< ')
}

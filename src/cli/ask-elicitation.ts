import type {
  Elicitation,
  ElicitationField,
  ElicitationValue,
  PendingCall,
} from '../../machines/agent/run-result.js'
import { formatCallPath, escapeInvisible } from '../core/format/format-call.js'
import { shorten } from '../core/format/format-words.js'
import { findFault } from '../core/sessions/elicitation-answer.js'
import { listChoices } from '../core/sessions/elicitation-choices.js'
import type { Answer } from './conversation.js'
import type { Ask } from './terminal-prompt.js'

/** What the server of a tool asks, as a line for people: whose words these are stands first. */
export function formatElicitation({ server, message, mode, url }: Elicitation, width = 400): string {
  const words = escapeInvisible(shorten(message, width))
  return `${escapeInvisible(server)} asks: ${words}${mode === 'url' ? ` ${escapeInvisible(url)}` : ''}`
}

/** Asks the user for what the server of a tool asks. Null when there is no answer. */
export async function askElicitation(
  call: Extract<PendingCall, { needs: 'elicitation' }>,
  ask: Ask,
): Promise<Answer | null> {
  const { elicitation } = call
  const head = `${formatCallPath(call)}: ${formatElicitation(elicitation, 2_000)}\n`
  const answerWith =
    (value: unknown): Answer =>
    (run) => {
      run.addToolOutput(call, value)
    }
  const choice =
    elicitation.mode === 'url' ? 'Open it? (y)es, (d)ecline, (c)ancel: ' : '(a)nswer, (d)ecline, (c)ancel: '
  for (;;) {
    const said = (await ask(head + choice))?.toLowerCase()
    if (said === undefined) return null
    if (/^d(ecline)?$/.test(said)) return answerWith({ action: 'decline' })
    if (/^c(ancel)?$/.test(said)) return answerWith({ action: 'cancel' })
    if (!/^(a(nswer)?|y(es)?)$/.test(said)) continue
    if (elicitation.mode === 'url') return answerWith({ action: 'accept' })
    const content = await askForm(elicitation, ask)
    return content && answerWith({ action: 'accept', content })
  }
}

async function askForm(
  { schema }: Extract<Elicitation, { mode: 'form' }>,
  ask: Ask,
): Promise<Record<string, ElicitationValue> | null> {
  const content: Record<string, ElicitationValue> = {}
  for (const [key, field] of Object.entries(schema.properties)) {
    // oxlint-disable-next-line no-await-in-loop -- one field after the other
    const value = await askField(key, field, schema.required?.includes(key) === true, ask)
    if (value === null) return null
    if (value !== undefined) content[key] = value
  }
  return content
}

/** Undefined: the field is left out. Null: there is no answer. */
async function askField(
  key: string,
  field: ElicitationField,
  isRequired: boolean,
  ask: Ask,
): Promise<ElicitationValue | undefined | null> {
  const { title = key, description, default: usual } = field
  const choices = listChoices(field)?.map((choice) => choice.const)
  const kind = choices
    ? `${field.type === 'array' ? 'some of ' : ''}${choices.join(' | ')}`
    : field.type === 'boolean'
      ? 'yes | no'
      : (field.format ?? { string: 'text', integer: 'whole number' }[field.type as string] ?? field.type)
  const enter =
    usual === undefined ? (isRequired ? '' : ', Enter leaves it out') : `, Enter for ${JSON.stringify(usual)}`
  const about = description === undefined ? '' : ` – ${description}`
  const question = escapeInvisible(shorten(`${title}${about} (${kind}${enter})`, 600))
  let fault = ''
  for (;;) {
    // oxlint-disable-next-line no-await-in-loop -- until it fits
    const text = await ask(`${fault}  ${question}: `)
    if (text === null) return null
    if (text === '' && usual !== undefined) return usual
    if (text === '' && !isRequired) return undefined
    const value = parseField(field, text)
    const problem = findFault(field, value)
    if (problem === false) return value as ElicitationValue
    fault = `  ${escapeInvisible(shorten(problem, 300))}.\n`
  }
}

function parseField({ type }: ElicitationField, text: string): unknown {
  switch (type) {
    case 'number':
    case 'integer':
      return text.trim() === '' ? text : Number(text)
    case 'boolean':
      return /^(y|yes|true)$/i.test(text) ? true : /^(n|no|false)$/i.test(text) ? false : text
    case 'array':
      return text === '' ? [] : text.split(',').map((one) => one.trim())
    default:
      return text
  }
}

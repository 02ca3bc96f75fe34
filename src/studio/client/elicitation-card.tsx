import { useState } from 'preact/hooks'
import type { ElicitationField, ElicitationValue } from '../../../machines/agent/run-result.js'
import { listChoices } from '../../core/sessions/elicitation-choices.js'
import type { Answer, PendingView } from '../protocol.js'
import { toTarget } from './call-target.js'

interface ElicitationProps {
  call: PendingView & { elicitation: NonNullable<PendingView['elicitation']> }
  isBusy: boolean
  send: (answer: Answer) => Promise<void>
}

/** What the server of a tool asks. Its words stand in a frame of their own: none of them may pass for ours. */
export function ElicitationCard({ call, isBusy, send }: ElicitationProps) {
  const { name, elicitation } = call
  const { server, message, mode, url, schema } = elicitation
  const fields = Object.entries(schema?.properties ?? {})
  const [content, setContent] = useState(() => takeDefaults(fields))
  const answer = (value: object) => send({ type: 'tool_output', ...toTarget(call), value })
  const isWhole = (schema?.required ?? []).every((key) => content[key] !== undefined)
  return (
    <article class="pending" aria-label={`${server} asks you`}>
      <header>
        <strong>{server}</strong>
        <span>asks you, in the middle of {name}</span>
      </header>
      <blockquote>{message}</blockquote>
      {fields.map(([key, field]) => (
        <FieldInput
          key={key}
          name={key}
          field={field}
          isRequired={schema?.required?.includes(key) === true}
          value={content[key]}
          onValue={(value) => setContent((before) => withValue(before, key, value))}
        />
      ))}
      {url !== undefined && (
        <p>
          It leads to <code>{url}</code>
        </p>
      )}
      <div class="buttons">
        {mode === 'form' ? (
          <button
            type="button"
            class="primary"
            disabled={isBusy || !isWhole}
            onClick={() => answer({ action: 'accept', content })}
          >
            Answer
          </button>
        ) : (
          <a
            class="button primary"
            // A log that was brought here from elsewhere may hold any text.
            {...(/^https?:\/\//i.test(url) && { href: url })}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => void answer({ action: 'accept' })}
          >
            Open the page
          </a>
        )}
        <button type="button" disabled={isBusy} onClick={() => answer({ action: 'decline' })}>
          Decline
        </button>
        <button type="button" disabled={isBusy} onClick={() => answer({ action: 'cancel' })}>
          Give no answer
        </button>
      </div>
    </article>
  )
}

type Content = Record<string, ElicitationValue>

function takeDefaults(fields: readonly [string, ElicitationField][]): Content {
  return Object.fromEntries(
    fields.flatMap(([key, field]) => (field.default === undefined ? [] : [[key, field.default] as const])),
  )
}

function withValue(before: Content, key: string, value: ElicitationValue | undefined): Content {
  const { [key]: _former, ...others } = before
  return value === undefined ? others : { ...others, [key]: value }
}

interface FieldProps {
  name: string
  field: ElicitationField
  isRequired: boolean
  value: ElicitationValue | undefined
  onValue: (value: ElicitationValue | undefined) => void
}

function FieldInput({ name, field, isRequired, value, onValue }: FieldProps) {
  const { title = name, description } = field
  return (
    <label>
      {title}
      {isRequired ? '' : ' (may be left out)'}
      {description !== undefined && <small> {description}</small>}
      <ValueInput field={field} value={value} onValue={onValue} />
    </label>
  )
}

function ValueInput({ field, value, onValue }: Pick<FieldProps, 'field' | 'value' | 'onValue'>) {
  const choices = listChoices(field)
  if (choices)
    return (
      <select
        multiple={field.type === 'array'}
        onChange={({ currentTarget: { selectedOptions } }) => {
          const chosen = [...selectedOptions].map((option) => option.value).filter(Boolean)
          onValue(field.type === 'array' ? chosen : chosen[0])
        }}
      >
        {field.type !== 'array' && <option value="" selected={value === undefined} />}
        {choices.map(({ const: choice, title }) => (
          <option key={choice} value={choice} selected={[value].flat().includes(choice)}>
            {title}
          </option>
        ))}
      </select>
    )
  if (field.type === 'boolean')
    return (
      <input
        type="checkbox"
        checked={value === true}
        onChange={({ currentTarget }) => onValue(currentTarget.checked)}
      />
    )
  const isNumber = field.type === 'number' || field.type === 'integer'
  return (
    <input
      // The types of JSX know each kind of input by itself.
      type={(isNumber ? 'number' : (inputTypes[field.format ?? ''] ?? 'text')) as 'number'}
      step={field.type === 'integer' ? 1 : 'any'}
      {...(field.minimum !== undefined && { min: field.minimum })}
      {...(field.maximum !== undefined && { max: field.maximum })}
      value={typeof value === 'boolean' || Array.isArray(value) ? '' : (value ?? '')}
      onInput={({ currentTarget }) => {
        const text = currentTarget.value
        onValue(text === '' ? undefined : isNumber ? Number(text) : text)
      }}
    />
  )
}

const inputTypes: Record<string, 'email' | 'url' | 'date'> = { email: 'email', uri: 'url', date: 'date' }

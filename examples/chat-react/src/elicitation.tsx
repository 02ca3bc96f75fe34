import { useState } from 'react'
import type { Elicitation, ElicitationAnswer, ElicitationField } from 'statewright'

interface ElicitationProps {
  elicitation: Elicitation
  /** The answer, or undefined while it is pending. */
  answer: ElicitationAnswer | undefined
  onAnswer: (answer: ElicitationAnswer) => void
}

const words: Record<string, string> = { accept: 'answered', decline: 'declined', cancel: 'not answered' }

/** A question from a tool's server, shown in a separate frame. */
export function ElicitationView({ elicitation, answer, onAnswer }: ElicitationProps) {
  const isOpen = answer === undefined
  return (
    <section className="call" data-asks={isOpen || undefined}>
      <h2>
        {elicitation.server} asks <small>{isOpen ? '' : (words[answer.action] ?? 'closed')}</small>
      </h2>
      <blockquote>{elicitation.message}</blockquote>
      {isOpen && <AnswerForm elicitation={elicitation} onAnswer={onAnswer} />}
    </section>
  )
}

function AnswerForm({ elicitation, onAnswer }: Pick<ElicitationProps, 'elicitation' | 'onAnswer'>) {
  const fields = Object.entries(elicitation.schema?.properties ?? {})
  const [content, setContent] = useState<NonNullable<ElicitationAnswer['content']>>(() =>
    Object.fromEntries(
      fields.flatMap(([key, { default: usual }]) => (usual === undefined ? [] : [[key, usual]])),
    ),
  )
  const set = (key: string, value: string | number | boolean | string[] | undefined) =>
    setContent(({ [key]: _former, ...others }) =>
      value === undefined ? others : { ...others, [key]: value },
    )
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        onAnswer({ action: 'accept', ...(elicitation.mode === 'form' && { content }) })
      }}
    >
      {fields.map(([key, field]) => (
        <label key={key}>
          {field.title ?? key}
          {field.description && <small>{field.description}</small>}
          <FieldInput
            field={field}
            isRequired={elicitation.schema?.required?.includes(key) === true}
            value={content[key]}
            onValue={(value) => set(key, value)}
          />
        </label>
      ))}
      <p className="row">
        {elicitation.mode === 'form' && <button className="primary">Answer</button>}
        {elicitation.mode === 'url' && (
          <a
            href={/^https?:/.test(elicitation.url) ? elicitation.url : undefined}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => onAnswer({ action: 'accept' })}
          >
            Open {elicitation.url}
          </a>
        )}
        <button type="button" onClick={() => onAnswer({ action: 'decline' })}>
          Decline
        </button>
        <button type="button" onClick={() => onAnswer({ action: 'cancel' })}>
          Not now
        </button>
      </p>
    </form>
  )
}

interface FieldProps {
  field: ElicitationField
  isRequired: boolean
  value: string | number | boolean | string[] | undefined
  onValue: (value: FieldProps['value']) => void
}

function FieldInput({ field, isRequired, value, onValue }: FieldProps) {
  const { type, enum: values, enumNames, oneOf, items } = field
  const named = oneOf ?? items?.anyOf
  const choices =
    named ?? (values ?? items?.enum)?.map((one, i) => ({ const: one, title: enumNames?.[i] ?? one }))
  if (choices)
    return (
      <select
        multiple={type === 'array'}
        required={isRequired}
        value={type === 'array' ? ((value ?? []) as string[]) : String(value ?? '')}
        onChange={({ target: { selectedOptions } }) => {
          const chosen = [...selectedOptions].map((option) => option.value)
          onValue(type === 'array' ? chosen : chosen[0] || undefined)
        }}
      >
        {type !== 'array' && <option value="" />}
        {choices.map(({ const: choice, title }) => (
          <option key={choice} value={choice}>
            {title}
          </option>
        ))}
      </select>
    )
  if (type === 'boolean')
    return (
      <input type="checkbox" checked={value === true} onChange={({ target }) => onValue(target.checked)} />
    )
  const isNumber = type === 'number' || type === 'integer'
  return (
    <input
      type={
        isNumber ? 'number' : ({ email: 'email', uri: 'url', date: 'date' }[field.format as string] ?? 'text')
      }
      required={isRequired}
      min={field.minimum}
      max={field.maximum}
      step={type === 'integer' ? 1 : isNumber ? 'any' : undefined}
      minLength={field.minLength}
      maxLength={field.maxLength}
      value={String(value ?? '')}
      onChange={({ target: { value: text } }) =>
        onValue(text === '' ? undefined : isNumber ? Number(text) : text)
      }
    />
  )
}

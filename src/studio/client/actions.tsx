import { useState } from 'preact/hooks'
import type { ElicitationField, ElicitationValue } from '../../../machines/agent/run-result.js'
import { formatWakeTime } from '../../core/base/clock.js'
import { parseJsonOr } from '../../core/base/json.js'
import { formatCount } from '../../core/format/format-words.js'
import { listChoices } from '../../core/sessions/elicitation-answer.js'
import { toTarget } from '../../core/sessions/inbox/session-message.js'
import type { Answer, GrantView, MomentView, PendingView } from '../protocol.js'
import { formatJson } from '../format.js'
import { Check, Refusal, useAttempt } from './loading.js'
import type { RunPage } from './run-page.js'

export function Actions({ run, moment }: { run: RunPage; moment: MomentView }) {
  const { view, row, place, hasResume } = run
  const { session, rows } = view
  const { pending, grants, actions } = moment
  const readOnly = session.isAttached ? null : view.readOnly
  const otherAgent = run.isOwn ? view.otherAgent : null
  const { trouble, isBusy, attempt } = useAttempt()
  const send = (answer: Answer): Promise<void> => attempt(() => run.answer(answer))
  const may = new Set(actions)
  const buttons = (['pause', 'resume', 'cancel'] as const).filter(
    (type) => may.has(type) && !(type === 'resume' && hasResume),
  )
  const says = (['reply', 'steer'] as const).find((type) => may.has(type))
  return (
    <section class="actions" aria-label="Actions" aria-busy={isBusy}>
      <Refusal text={trouble} />
      {otherAgent !== null && !hasResume && actions.length > 0 && <p class="other-agent">{otherAgent}</p>}
      {pending.map(({ elicitation, ...call }) => {
        const key = `${call.callId} ${call.messageId} ${call.fingerprint}`
        return elicitation && may.has('toolOutput') ? (
          <ElicitationCard key={key} call={{ ...call, elicitation }} isBusy={isBusy} send={send} />
        ) : (
          <PendingCard
            key={key}
            call={call}
            now={place === rows.length - 1 ? run.time : undefined}
            may={may}
            isBusy={isBusy}
            send={send}
          />
        )
      })}
      {grants.length > 0 && (
        <Grants grants={grants} mayRevoke={may.has('revoke')} isBusy={isBusy} send={send} />
      )}
      {pending.length > 0 && readOnly !== null && <p class="read-only">{readOnly}</p>}
      {says && <SayForm key={says} type={says} isPaused={may.has('resume')} isBusy={isBusy} send={send} />}
      {buttons.length > 0 && (
        <div class="buttons">
          {buttons.map((type) => (
            <button
              key={type}
              disabled={isBusy}
              class={type === 'cancel' ? 'danger' : ''}
              onClick={() => send({ type })}
            >
              {type === 'resume' && row.wakeAt !== undefined ? 'Wake it now' : actionWords[type]}
            </button>
          ))}
        </div>
      )}
    </section>
  )
}

const actionWords = { pause: 'Pause', resume: 'Resume', cancel: 'Cancel the run' }

const afterExpiry = {
  reject: 'the call is not executed',
  pause: 'the run pauses',
  cancel: 'the run is cancelled',
}

interface PendingProps {
  call: PendingView
  /** Set only at the last record, and only if one of the run's questions can expire. */
  now: number | undefined
  may: ReadonlySet<Answer['type']>
  isBusy: boolean
  send: (answer: Answer) => Promise<void>
}

function PendingCard({ call, now = 0, may, isBusy, send }: PendingProps) {
  const { name, needs, expiresAt = Infinity, onExpiry = 'reject' } = call
  const isLate = now >= expiresAt
  const canDecide = needs === 'approval' && !isLate
  const target = toTarget(call)
  const written = formatJson(call.arguments)
  const [text, setText] = useState(needs === 'approval' ? written : '')
  const [why, setWhy] = useState('')
  const [isGranted, setGranted] = useState(false)
  const parsed = parseJsonOr(text, undefined)
  const isEdited = needs === 'approval' && text !== written
  // The text may be cut or redacted, so unchanged text approves the original arguments.
  const isWrong = (isEdited || needs === 'client') && parsed === undefined
  return (
    <article class="pending" tabIndex={-1} aria-label={`${name} is waiting for you`}>
      <header>
        <strong>{name}</strong>
        <span>
          {isLate ? 'expired' : needs === 'approval' ? 'needs your approval' : 'needs a result from you'}
        </span>
      </header>
      {call.reason !== undefined && <p>{call.reason}</p>}
      {expiresAt < Infinity && (
        <p class={isLate ? 'refusal' : ''}>
          {isLate ? 'Expired' : 'Expires'} at {formatWakeTime(expiresAt)}.{' '}
          {isLate ? 'When the session is resumed,' : 'Then'} {afterExpiry[onExpiry]}.
        </p>
      )}
      {needs === 'client' && <pre tabIndex={0}>{written}</pre>}
      <label>
        <span class={needs === 'approval' ? 'sr' : ''}>
          {needs === 'approval' ? 'Arguments' : 'Result, as JSON'}
        </span>
        <textarea
          spellcheck={false}
          rows={Math.min(12, Math.max(3, text.split('\n').length))}
          value={text}
          disabled={isLate || !may.has(needs === 'approval' ? 'approve' : 'toolOutput')}
          aria-invalid={isWrong && text !== ''}
          onInput={(event) => setText(event.currentTarget.value)}
        />
      </label>
      {isWrong && text !== '' && <p class="refusal">Not valid JSON.</p>}
      {canDecide && call.isGrantable && may.has('approve') && (
        <Check isOn={isGranted} onChange={setGranted}>
          Also approve later calls with these arguments
        </Check>
      )}
      <div class="buttons">
        {isLate && may.has('approve') && (
          <button class="primary" disabled={isBusy} onClick={() => send({ type: 'resume' })}>
            Resume
          </button>
        )}
        {canDecide && may.has('approve') && (
          <button
            class="primary"
            disabled={isBusy || isWrong}
            onClick={() =>
              send({
                type: 'approve',
                ...target,
                ...(isEdited && { editedInput: parsed }),
                ...(isGranted && { grant: {} }),
              })
            }
          >
            {isEdited ? 'Approve as edited' : 'Approve'}
          </button>
        )}
        {canDecide && may.has('reject') && (
          <>
            <button
              disabled={isBusy}
              onClick={() =>
                send({ type: 'reject', ...target, ...(why.trim() !== '' && { why: why.trim() }) })
              }
            >
              Reject
            </button>
            <input
              type="text"
              class="why"
              placeholder="Reason (if rejecting)"
              aria-label="Reason (if rejecting)"
              value={why}
              onInput={(event) => setWhy(event.currentTarget.value)}
            />
          </>
        )}
        {needs === 'client' && may.has('toolOutput') && (
          <button
            class="primary"
            disabled={isBusy || isWrong}
            onClick={() => send({ type: 'toolOutput', ...target, value: parsed })}
          >
            Submit
          </button>
        )}
      </div>
    </article>
  )
}

interface GrantsProps extends Pick<PendingProps, 'isBusy' | 'send'> {
  grants: readonly GrantView[]
  mayRevoke: boolean
}

function Grants({ grants, mayRevoke, isBusy, send }: GrantsProps) {
  const active = grants.filter(({ ended }) => ended === null).length
  // The section stays open when the last grant ends.
  const [isOpen] = useState(active > 0)
  return (
    <details class="grants" open={isOpen}>
      <summary>{active === 0 ? 'No active grants' : formatCount(active, 'active grant')}</summary>
      <ul>
        {grants.map((grant) => (
          <li key={grant.id} class={grant.ended === null ? '' : 'is-off'}>
            <strong>{grant.tool}</strong>{' '}
            {grant.arguments === '{}' && !grant.isExact ? (
              'with any arguments'
            ) : (
              <code>{grant.arguments}</code>
            )}
            <small>{describeGrant(grant)}</small>
            {grant.ended === null && mayRevoke && (
              <button
                disabled={isBusy}
                aria-label={`Revoke the grant for ${grant.tool}`}
                onClick={() => send({ type: 'revoke', grant: grant.id })}
              >
                Revoke
              </button>
            )}
          </li>
        ))}
      </ul>
    </details>
  )
}

function describeGrant({ speaker, usesLeft, uses, until, givers, ended }: GrantView): string {
  const left = usesLeft === null ? '' : `${usesLeft}${uses === null ? '' : ` of ${uses}`} uses left`
  return [
    ended ?? '',
    speaker === undefined ? '' : `agent ${speaker}`,
    left,
    until === null ? '' : `until ${formatWakeTime(until)}`,
    givers.length === 0 ? '' : `given by ${givers.join(', ')}`,
  ]
    .filter(Boolean)
    .join(' · ')
}

function SayForm({
  type,
  isPaused,
  isBusy,
  send,
}: Pick<PendingProps, 'isBusy' | 'send'> & { type: 'reply' | 'steer'; isPaused: boolean }) {
  const [text, setText] = useState('')
  const submit = (event: Event): void => {
    event.preventDefault()
    if (text.trim() === '') return
    const words = text.trim()
    void send(type === 'reply' ? { type, input: words } : { type, text: words }).then(() => setText(''))
  }
  return (
    <form class={`say ${type}`} onSubmit={submit}>
      <label class="sr" for="say">
        {type === 'reply' ? 'Reply' : 'Steer the run'}
      </label>
      <input
        id="say"
        type="text"
        value={text}
        placeholder={
          type === 'reply'
            ? 'Reply …'
            : isPaused
              ? 'Guidance for when it resumes …'
              : 'Send guidance while it runs …'
        }
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <button type="submit" disabled={isBusy || text.trim() === ''}>
        {type === 'reply' ? 'Reply' : 'Steer'}
      </button>
    </form>
  )
}

interface ElicitationProps extends Pick<PendingProps, 'isBusy' | 'send'> {
  call: PendingView & { elicitation: NonNullable<PendingView['elicitation']> }
}

/** The text of the question is framed, so that it is not mistaken for the studio's own text. */
function ElicitationCard({ call, isBusy, send }: ElicitationProps) {
  const { name, elicitation } = call
  const { server, message, mode, url, schema } = elicitation
  const fields = Object.entries(schema?.properties ?? {})
  const [content, setContent] = useState(() => takeDefaults(fields))
  const answer = (value: object) => send({ type: 'toolOutput', ...toTarget(call), value })
  const isWhole = (schema?.required ?? []).every((key) => content[key] !== undefined)
  return (
    <article class="pending" tabIndex={-1} aria-label={`${server} asks you`}>
      <header>
        <strong>{server}</strong>
        <span>asks during {name}</span>
      </header>
      <blockquote>{message}</blockquote>
      {fields.map(([key, field]) => (
        <label key={key}>
          {field.title ?? key}
          {schema?.required?.includes(key) === true ? '' : ' (optional)'}
          {field.description !== undefined && <small> {field.description}</small>}
          <FieldInput
            field={field}
            value={content[key]}
            onValue={(value) => setContent((before) => withValue(before, key, value))}
          />
        </label>
      ))}
      {url !== undefined && (
        <p>
          Opens <code>{url}</code>
        </p>
      )}
      <div class="buttons">
        {mode === 'form' ? (
          <button
            class="primary"
            disabled={isBusy || !isWhole}
            onClick={() => answer({ action: 'accept', content })}
          >
            Answer
          </button>
        ) : (
          <a
            class="button primary"
            // An imported log may contain any text.
            {...(/^https?:\/\//i.test(url) && { href: url })}
            target="_blank"
            rel="noopener noreferrer"
            onClick={() => void answer({ action: 'accept' })}
          >
            Open the page
          </a>
        )}
        <button disabled={isBusy} onClick={() => answer({ action: 'decline' })}>
          Decline
        </button>
        <button disabled={isBusy} onClick={() => answer({ action: 'cancel' })}>
          Dismiss
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
  field: ElicitationField
  value: ElicitationValue | undefined
  onValue: (value: ElicitationValue | undefined) => void
}

function FieldInput({ field, value, onValue }: FieldProps) {
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
      // JSX has a separate type for each kind of input.
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

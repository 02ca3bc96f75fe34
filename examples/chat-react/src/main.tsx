import { useChat } from '@ai-sdk/react'
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from 'ai'
import { useEffect } from 'react'
import { createRoot } from 'react-dom/client'

// The address has the chat's id, so a reload and another tab show the same chat.
const id = location.hash.slice(1) || crypto.randomUUID()
location.hash = id
const history = async (): Promise<UIMessage[]> => (await fetch(`/api/chat/${id}`)).json()
const asJson = { method: 'POST', headers: { 'content-type': 'application/json' } }

function Chat({ messages: before }: { messages: UIMessage[] }) {
  const { messages, setMessages, sendMessage, resumeStream, addToolApprovalResponse, status, error } =
    useChat({
      id,
      messages: before,
      sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    })
  const isBusy = status === 'submitted' || status === 'streaming'
  // Continues an answer that is under way; the history has an answer that ended meanwhile.
  const catchUp = async () => {
    await resumeStream()
    setMessages(await history())
  }
  useEffect(() => void catchUp(), [])
  // Continues after the server was unreachable.
  useEffect(() => {
    const timer = status === 'error' && setTimeout(() => void catchUp().catch(() => undefined), 1000)
    return () => clearTimeout(timer || undefined)
  }, [status])
  const say = (form: FormData) => void sendMessage({ text: form.get('text') as string })
  const part = (each: UIMessage['parts'][number], i: number) => {
    if (each.type === 'text') return <span key={i}>{each.text}</span>
    if (!('toolCallId' in each)) return null
    const name = each.title ?? each.type.replace('tool-', '')
    const answer = (approved: boolean) =>
      each.state === 'approval-requested' && void addToolApprovalResponse({ id: each.approval.id, approved })
    return (
      <fieldset key={each.toolCallId}>
        <legend>{`${name}: ${each.state}`}</legend>
        <code>{JSON.stringify(each.state === 'output-available' ? each.output : each.input)}</code>
        {each.state === 'approval-requested' && (
          <p>
            <button onClick={() => answer(true)}>Approve</button>{' '}
            <button onClick={() => answer(false)}>Reject</button>
          </p>
        )}
      </fieldset>
    )
  }
  return (
    <>
      {messages.map(({ id: key, role, parts }) => (
        <article key={key} data-role={role}>
          {parts.map(part)}
        </article>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form action={say}>
        <input name="text" placeholder="Say something" />
        {isBusy ? (
          <button type="button" onClick={() => void fetch(`/api/chat/${id}/stop`, asJson)}>
            Stop
          </button>
        ) : (
          <button>Send</button>
        )}
      </form>
    </>
  )
}

createRoot(document.getElementById('root') as HTMLElement).render(<Chat messages={await history()} />)

import { useChat } from '@ai-sdk/react'
import { type FormEvent, type KeyboardEvent, use, useEffect, useRef, useState } from 'react'
import { asks, type ChatMessage, isLost, isQueued, openChat, refresh } from './chats'
import { Message, textOf } from './message'

export function Conversation({ id, onChange }: { id: string; onChange: () => void }) {
  const chat = use(openChat(id))
  const { messages, status, error, sendMessage, regenerate, resumeStream, stop } = useChat({
    chat,
    resume: true,
  })
  const [text, setText] = useState('')
  const [editing, setEditing] = useState<string>()
  const [files, setFiles] = useState<FileList>()
  const input = useRef<HTMLTextAreaElement>(null)
  const end = useRef<HTMLDivElement>(null)
  const isBusy = status === 'submitted' || status === 'streaming'
  const isAsking = !isBusy && asks(messages.findLast((message) => !isQueued(message)))
  const isCut = isLost(error)

  // The connection broke in the middle of an answer: the transport waits until the server is back.
  useEffect(() => void (isCut && resumeStream()), [isCut, resumeStream])
  useEffect(onChange, [status])
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'end' })
  }, [messages])

  async function say(event?: FormEvent): Promise<void> {
    event?.preventDefault()
    if (text.trim() === '' && !files) return
    setText('')
    setFiles(undefined)
    setEditing(undefined)
    const metadata = isBusy ? { queued: true as const } : undefined
    await sendMessage({ text, files, metadata, messageId: editing })
    // Refused: the person can change it.
    if (chat.status !== 'error' || isLost(chat.error)) return
    setText(text)
    await refresh(chat)
  }

  function edit(message: ChatMessage): void {
    setEditing(message.id)
    setText(textOf(message))
    input.current?.focus()
  }

  function sendByEnter(event: KeyboardEvent): void {
    if (event.key === 'Enter' && !event.shiftKey && !event.nativeEvent.isComposing) void say(event as never)
    if (event.key === 'Escape' && editing) {
      setEditing(undefined)
      setText('')
    }
  }

  // Queued messages wait at the end, whatever has been answered since they were sent.
  const shown = [...messages.filter((message) => !isQueued(message)), ...messages.filter(isQueued)]
  const lastAnswer = shown.findLast(({ role }) => role === 'assistant')
  return (
    <>
      <main>
        <div className="thread" aria-live="polite">
          {shown.length === 0 && <p className="hello">Where would you like to go?</p>}
          {shown.map((message) => (
            <Message
              key={message.id}
              message={message}
              isQueued={isQueued(message)}
              onEdit={isBusy || isAsking || message.role !== 'user' ? undefined : () => edit(message)}
              onRegenerate={
                isBusy || isAsking || message !== lastAnswer
                  ? undefined
                  : () => void regenerate({ messageId: message.id })
              }
              onApprove={(approvalId, approved) =>
                void chat.addToolApprovalResponse({
                  id: approvalId,
                  approved,
                  ...(!approved && { reason: 'No.' }),
                })
              }
              onPick={(toolCallId, seat) =>
                void chat.addToolOutput({ tool: 'pick_seat', toolCallId, output: { seat } })
              }
            />
          ))}
          {status === 'submitted' && <p className="dots" aria-label="The answer is on its way" />}
          {error && !isCut && (
            <p className="fault" role="alert">
              {error.message}
            </p>
          )}
          <div ref={end} />
        </div>
      </main>
      <footer>
        {editing && (
          <p className="hint">You edit a message. What follows it is answered anew. Esc keeps it.</p>
        )}
        {isAsking && <p className="hint">The answer waits for you, above.</p>}
        <form onSubmit={say}>
          <label className="attach" title="Add pictures">
            <input
              type="file"
              accept="image/*"
              multiple
              onChange={(event) => setFiles(event.target.files ?? undefined)}
            />
            {files?.length ? `+ ${files.length}` : '+'}
          </label>
          <textarea
            ref={input}
            rows={1}
            aria-label="Message"
            placeholder={isBusy ? 'Next message: it is queued' : 'To Lisbon, tomorrow morning'}
            value={text}
            disabled={isAsking}
            onChange={(event) => setText(event.target.value)}
            onKeyDown={sendByEnter}
          />
          {isBusy && (
            <button type="button" className="stop" onClick={() => void stop()}>
              Stop
            </button>
          )}
          <button className="primary" disabled={isAsking || (text.trim() === '' && !files)}>
            {isBusy ? 'Queue' : 'Send'}
          </button>
        </form>
      </footer>
    </>
  )
}

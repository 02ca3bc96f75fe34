import { quoteShellWord } from '../../core/format/shell-words.js'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { SharedView, ShareForm } from '../protocol.js'
import { formatError, sessionAddress } from '../format.js'
import { Check, useLoaded } from './loading.js'

interface ShareProps {
  id: string
  seq: number
  load: (as: { form: ShareForm; texts: boolean }) => Promise<SharedView>
  onClose: () => void
}

export function ShareDialog({ id, seq, load, onClose }: ShareProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [isBare, setBare] = useState(false)
  const [status, setStatus] = useState('')
  const preview = useLoaded(String(isBare), () => load({ form: 'card', texts: !isBare }))
  useEffect(() => dialog.current?.showModal(), [])
  const name = id.replaceAll(/[^\w-]+/g, '-').slice(0, 60)
  const attempt = (what: () => Promise<string>): void => {
    setStatus('…')
    what().then(setStatus, (error: unknown) => setStatus(formatError(error)))
  }
  const download = async (form: ShareForm, kind: 'html' | 'svg' | 'png'): Promise<string> => {
    const { content } = await load({ form, texts: !isBare })
    const blob =
      kind === 'png'
        ? await drawPng(content)
        : new Blob([content], { type: kind === 'svg' ? 'image/svg+xml' : 'text/html' })
    const file = `${name}${form === 'film' ? '-film' : ''}.${kind}`
    saveFile(blob, file)
    return `Saved ${file}. Check its content before you share it.`
  }
  const copy = async (text: string): Promise<string> => {
    await navigator.clipboard.writeText(text)
    return `Copied: ${text}`
  }
  const link = `${location.origin}${location.pathname}${sessionAddress(id, seq)}`
  const command = `npx statewright sessions export ${quoteShellWord(id)} --as test --agent ./agent.mjs --out ${quoteShellWord(`test/${name}.test.mjs`)}`
  const offers: readonly (readonly [label: string, use: string, act: () => Promise<string>])[] = [
    ...downloads.map(([label, form, kind, use]) => [label, use, () => download(form, kind)] as const),
    [`Copy the link to record ${seq}`, 'For this browser only.', () => copy(link)],
    [
      'Copy the command for a test',
      'For a test suite. It replays the session, including its text, without a model.',
      () => copy(command),
    ],
  ]
  return (
    <dialog ref={dialog} class="fork share" aria-labelledby="share-title" onClose={onClose}>
      <form method="dialog">
        <h2 id="share-title">Share this session</h2>
        {preview.value === null ? (
          <p class="share-preview">
            {preview.error === null ? 'Drawing the preview …' : formatError(preview.error)}
          </p>
        ) : (
          <img
            class="share-preview"
            src={toImageAddress(preview.value.content)}
            alt="Preview of the picture"
          />
        )}
        <Check isOn={isBare} onChange={setBare}>
          Without text (only states, times, costs and tool names)
        </Check>
        <ul class="share-forms">
          {/* The label follows the last record of a live session, so it is no key. */}
          {offers.map(([label, use, act]) => (
            <li key={use}>
              <button type="button" onClick={() => attempt(act)}>
                {label}
              </button>
              <small>{use}</small>
            </li>
          ))}
        </ul>
        <p role="status">{status}</p>
        <div class="buttons">
          <button type="submit">Close</button>
        </div>
      </form>
    </dialog>
  )
}

const toImageAddress = (svg: string): string => `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`

const downloads: readonly [label: string, form: ShareForm, kind: 'html' | 'svg' | 'png', use: string][] = [
  ['HTML file', 'page', 'html', 'For a colleague. The whole page with all records; no server needed.'],
  ['Picture (SVG)', 'card', 'svg', 'For a README or an issue. The preview above, sharp at any size.'],
  ['Picture (PNG)', 'card', 'png', 'For chats and slides. The preview above as a bitmap.'],
  ['Film (SVG)', 'film', 'svg', 'For a README. It plays the run on the chart.'],
]

function saveFile(blob: Blob, name: string): void {
  const address = URL.createObjectURL(blob)
  const anchor = Object.assign(document.createElement('a'), { href: address, download: name })
  anchor.click()
  setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

async function drawPng(svg: string): Promise<Blob> {
  const image = new Image()
  image.src = toImageAddress(svg)
  await image.decode()
  const scale = 2
  const canvas = Object.assign(document.createElement('canvas'), {
    width: image.naturalWidth * scale,
    height: image.naturalHeight * scale,
  })
  canvas.getContext('2d')?.drawImage(image, 0, 0, canvas.width, canvas.height)
  return new Promise((resolve, reject) => {
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error('This browser could not create the picture.'))),
      'image/png',
    )
  })
}

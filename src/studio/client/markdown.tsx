import type { MarkedToken, Tokens } from 'marked'
import type { ComponentChildren } from 'preact'
import { useMemo } from 'preact/hooks'
import { isPicture } from '../format.js'
import { Table } from './long-text.js'
import { listInner, type MarkdownToken, parseMarkdown } from './parse-markdown.js'

/** HTML in the text is shown as text, and nothing is loaded from the network. */
export function Markdown({ text }: { text: string }) {
  const tokens = useMemo(() => parseMarkdown(text), [text])
  return (
    <div class="markdown" dir="auto">
      {tokens === null ? <p class="as-written">{text}</p> : tokens.map(renderToken)}
    </div>
  )
}

function renderToken(token: MarkdownToken, key: number): ComponentChildren {
  const inside = (): ComponentChildren => listInner(token).map(renderToken)
  switch (token.type) {
    case 'heading':
      // Headings in a message are not headings of the page.
      return (
        <p key={key} class={`heading level-${token.depth}`}>
          {inside()}
        </p>
      )
    case 'paragraph':
      return <p key={key}>{inside()}</p>
    case 'br':
      return <br key={key} />
    case 'hr':
      return <hr key={key} />
    case 'blockquote':
      return <blockquote key={key}>{inside()}</blockquote>
    case 'code':
      return (
        <pre key={key} tabIndex={0} data-language={token.lang?.slice(0, 30) || undefined}>
          <code>{token.text}</code>
        </pre>
      )
    case 'codespan':
      return <code key={key}>{token.text}</code>
    case 'em':
      return <em key={key}>{inside()}</em>
    case 'strong':
      return <strong key={key}>{inside()}</strong>
    case 'del':
      return <s key={key}>{inside()}</s>
    case 'list':
      return token.ordered ? (
        <ol key={key} start={token.start || 1}>
          {inside()}
        </ol>
      ) : (
        <ul key={key}>{inside()}</ul>
      )
    case 'list_item':
      return <li key={key}>{inside()}</li>
    case 'table':
      return <MarkdownTable key={key} table={token} />
    case 'link':
      return (
        <Link key={key} address={token.href} title={token.title}>
          {inside()}
        </Link>
      )
    case 'image':
      return <Image key={key} image={token} />
    case 'text':
      return token.tokens ? inside() : token.text
    case 'escape':
      return token.text
    case 'space':
      return null
    case 'html':
      if (/^<br *\/?>$/i.test(token.raw)) return <br key={key} />
      return token.block ? renderAsWritten(token.raw, key) : token.raw
    case 'def':
    case 'as-written':
      return renderAsWritten(token.raw, key)
    default:
      return token.raw
  }
}

const renderAsWritten = (text: string, key: number) => (
  <p key={key} class="as-written">
    {text.trimEnd()}
  </p>
)

function MarkdownTable({ table: { header, rows } }: { table: Tokens.Table }) {
  const renderCell = ({ tokens }: Tokens.TableCell) => (tokens as MarkedToken[]).map(renderToken)
  return (
    <div class="wide" tabIndex={0} role="group" aria-label="Table">
      <Table head={header.map(renderCell)}>
        {rows.map((cells, row) => (
          <tr key={row}>
            {cells.map((cell, column) => (
              <td key={column}>{renderCell(cell)}</td>
            ))}
          </tr>
        ))}
      </Table>
    </div>
  )
}

interface LinkProps {
  address: string
  title?: string | null | undefined
  children: ComponentChildren
}

function Link({ address, title, children }: LinkProps) {
  const url = readWebAddress(address)
  if (url === null) {
    return (
      <>
        {children} <small class="address">({address})</small>
      </>
    )
  }
  return (
    <>
      <a href={url.href} title={title ?? undefined} target="_blank" rel="noopener noreferrer">
        {children}
      </a>{' '}
      <small class="address">{url.host || url.pathname}</small>
    </>
  )
}

/** Only embedded pictures: loading one from the web would tell its server that the text is being read. */
function Image({ image: { href, text, title } }: { image: Tokens.Image }) {
  if (isPicture(href)) return <img src={href} alt={text} title={title ?? undefined} />
  return (
    <>
      [picture:{' '}
      <Link address={href} title={title}>
        {text || href}
      </Link>
      ]
    </>
  )
}

function readWebAddress(text: string): URL | null {
  const url = URL.canParse(text) ? new URL(text) : null
  return url !== null && ['https:', 'http:', 'mailto:'].includes(url.protocol) ? url : null
}

/** What redirections do. */
import type { Redirect, Redirection } from 'unbash'
import { literal } from './words.ts'

/** How its file is touched. */
export function kindsOf({ operator }: Redirect): ('read' | 'write')[] {
  if (operator === '<>') return ['read', 'write']
  return operator === '<' || operator === '<&' ? ['read'] : ['write']
}

/** A redirection to or from nowhere, or between descriptors. */
export function isHarmless(node: Redirection): boolean {
  if (node.type !== 'Redirect') return false
  const target = node.target && literal(node.target)
  if (target === '/dev/null') return true
  return (node.operator === '>&' || node.operator === '<&') && target !== undefined && /^(?:\d+-?|-)$/.test(target)
}

/** A redirection of standard input. */
export function isInput(node: Redirection): boolean {
  if (node.type !== 'Redirect') return true
  return /^<[>&]?$/.test(node.operator) && (node.descriptor?.type !== 'FileDescriptor' || node.descriptor.value === 0)
}

/** An input that is empty. */
export function isNothing(node: Redirection): boolean {
  return node.type === 'Redirect' && /^(?:\/dev\/null|-)$/.test((node.target && literal(node.target)) ?? '')
}

const jsonRanges = new Set(['application/json', 'application/*', '*/*']);

/** Whether an Accept header lets the answer be JSON; an absent one does. */
export function acceptsJson(accept: string | undefined): boolean {
  if (accept === undefined || accept === '*/*' || accept.trim() === '') return true;
  return accept.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase());
    return jsonRanges.has(type) && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

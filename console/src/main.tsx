import { render } from 'preact';
import './style.css';
import { Console } from './console.js';
import { printTextsOnly } from './printable.js';

const root = document.getElementById('console');
if (root === null) throw new Error('the page has no place for the console');
printTextsOnly();
render(<Console />, root);

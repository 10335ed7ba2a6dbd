"""What people look at: statistics, tables, plots, the page, films. It reads run folders and never trains."""
